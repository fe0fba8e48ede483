"""Reads metrics from the standard input as Prometheus does, and checks the rules of its text format."""

import sys

from prometheus_client.parser import text_string_to_metric_families

text = sys.stdin.read()
families = list(text_string_to_metric_families(text))
names = [family.name for family in families]
assert len(names) == len(set(names)), "a repeated family"
samples = {}
for family in families:
    assert family.documentation and family.type in ("counter", "gauge", "histogram"), family
    for sample in family.samples:
        key = (sample.name, tuple(sorted(sample.labels.items())))
        assert key not in samples, f"{key} is repeated"
        samples[key] = sample.value

histogram = next(family for family in families if family.type == "histogram")
by_command = {}
for sample in histogram.samples:
    of = (sample.labels["protocol"], sample.labels["command"])
    by_command.setdefault(of, []).append(sample)
for of, told in by_command.items():
    buckets = [(float(s.labels["le"]), s.value) for s in told if s.name.endswith("_bucket")]
    assert buckets == sorted(buckets), of
    assert buckets[-1][0] == float("inf")
    assert [value for _, value in buckets] == sorted(value for _, value in buckets), of
    count = [s.value for s in told if s.name.endswith("_count")]
    assert count == [buckets[-1][1]], of
    (total,) = [s.value for s in told if s.name.endswith("_sum")]
    assert total > 0, of

for expected in sys.argv[1:]:
    name, _, value = expected.partition("=")
    found = [v for (n, labels), v in samples.items() if n == name]
    assert found == [float(value)], (expected, found)
assert {("memcached", "get"), ("redis", "set")} <= set(by_command), by_command.keys()
