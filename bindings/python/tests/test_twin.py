"""Compares a map with a dict: the same steps give the same results. Codecs keep the order of the values they encode."""

from hypothesis import given, settings, strategies as st

import wollemi
from wollemi import codecs

keys = st.binary(max_size=4)
values = st.binary(max_size=12)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("put"), keys, values),
        st.tuples(st.just("insert"), keys, values),
        st.tuples(st.just("discard"), keys),
        st.tuples(st.just("swap"), keys, st.none() | values, st.none() | values),
        st.tuples(st.just("range"), st.none() | keys, st.none() | keys, st.none() | st.binary(max_size=2), st.booleans()),
        st.tuples(st.just("multi"), st.lists(keys, max_size=4)),
        st.tuples(st.just("pop"), st.booleans()),
    ),
    max_size=40,
)


def entries(twin, start, stop, prefix, reverse):
    found = sorted(
        (key, value)
        for key, value in twin.items()
        if (start is None or key >= start)
        and (stop is None or key < stop)
        and (prefix is None or key.startswith(prefix))
    )
    return found[::-1] if reverse else found


def apply(mapping, twin, step):
    """Returns the results of both for a step."""
    name, *arguments = step
    if name == "put":
        key, value = arguments
        mapping[key] = twin[key] = value
        return None, None
    if name == "insert":
        key, value = arguments
        added = key not in twin
        twin.setdefault(key, value)
        return mapping.insert(key, value), added
    if name == "discard":
        return mapping.discard(*arguments), twin.pop(*arguments, None) is not None
    if name == "swap":
        key, expected, new = arguments
        fits = twin.get(key) == expected
        if fits and new is None:
            twin.pop(key, None)
        elif fits:
            twin[key] = new
        return mapping.compare_and_swap(key, expected, new), fits
    if name == "range":
        *bounds, prefix, reverse = arguments
        return list(mapping.items(*bounds, prefix=prefix, reverse=reverse)), entries(twin, *bounds, prefix, reverse)
    if name == "multi":
        return mapping.multi_get(*arguments), [twin.get(key) for key in arguments[0]]
    (last,) = arguments
    if not twin:
        return None, None
    end = (max if last else min)(twin)
    return mapping.popitem(last=last), (end, twin.pop(end))


@settings(max_examples=150)
@given(steps)
def test_a_map_is_a_sorted_dict(history):
    with wollemi.open(None, max_size=64 << 20) as db:
        mapping, twin = db.map("m"), {}
        for step in history:
            ours, theirs = apply(mapping, twin, step)
            assert ours == theirs, step
        assert list(mapping.items()) == sorted(twin.items())


@settings(max_examples=75)
@given(steps, steps)
def test_a_transaction_is_a_sorted_dict_until_it_is_committed(before, inside):
    with wollemi.open(None, max_size=64 << 20) as db:
        mapping, twin = db.map("m"), {}
        for step in before:
            apply(mapping, twin, step)
        outside = dict(twin)
        with db.transaction() as tx:
            seen = tx[mapping]
            for name, *arguments in inside:
                if name == "put":
                    seen[arguments[0]] = twin[arguments[0]] = arguments[1]
                elif name == "discard":
                    assert (seen.pop(*arguments, None), True)[0] == twin.pop(*arguments, None)
                elif name == "range":
                    *bounds, prefix, reverse = arguments
                    assert list(seen.items(*bounds, prefix=prefix, reverse=reverse)) == entries(
                        twin, *bounds, prefix, reverse
                    )
            assert dict(mapping) == outside
        assert list(mapping.items()) == sorted(twin.items())


ints = st.integers(-(2**63), 2**63 - 1)
leaves = st.one_of(st.text(max_size=4), ints, st.binary(max_size=4))


@given(ints, ints)
def test_ints_keep_their_order(a, b):
    codec = codecs.int_codec
    assert (codec.encode(a) < codec.encode(b)) == (a < b) and codec.decode(codec.encode(a)) == a


@given(st.text(), st.text())
def test_strings_keep_their_order(a, b):
    codec = codecs.str_codec
    assert (codec.encode(a) < codec.encode(b)) == (a < b) and codec.decode(codec.encode(a)) == a


nested = st.recursive(
    st.one_of(leaves, st.none(), st.booleans(), st.floats(allow_nan=False)),
    lambda inner: st.lists(inner, max_size=3).map(tuple),
    max_leaves=6,
)


@given(st.lists(nested, max_size=4).map(tuple))
def test_tuples_come_back(value):
    codec = codecs.tuple_codec
    assert codec.decode(codec.encode(value)) == value


@given(st.data(), st.lists(st.sampled_from(["int", "text", "bytes", "float"]), min_size=1, max_size=3))
def test_tuples_keep_their_order(data, shape):
    kinds = {
        "int": ints,
        "text": st.text(max_size=3),
        "bytes": st.binary(max_size=3),
        # 0.0 instead of -0.0, which Python considers equal.
        "float": st.floats(allow_nan=False).map(lambda number: number + 0.0),
    }
    element = st.tuples(*(kinds[kind] for kind in shape))
    a, b = data.draw(element), data.draw(element)
    codec = codecs.tuple_codec
    if a != b:
        assert (codec.encode(a) < codec.encode(b)) == (a < b)
    assert codec.encode(a[:-1]) == codec.encode(a)[: len(codec.encode(a[:-1]))]
