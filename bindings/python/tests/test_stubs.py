"""The stubs say what the package has."""

import ast
import collections.abc
import inspect
import pathlib

import wollemi
from wollemi import _database

FOLDER = pathlib.Path(wollemi.__file__).parent


def parse(name):
    return ast.parse((FOLDER / name).read_text()).body


STUBS = {node.name: node for node in parse("_database.pyi") if isinstance(node, (ast.ClassDef, ast.FunctionDef))}
CLASSES = [
    name for name, node in STUBS.items() if isinstance(node, ast.ClassDef) and name != "Codec" and name[0] != "_"
]


def parameters(function):
    given = function.args
    return {argument.arg for argument in given.posonlyargs + given.args + given.kwonlyargs} - {"self"}


def methods(name):
    """Returns the parameters of each method that a stub and its bases declare; of overloads together."""
    node, found = STUBS[name], {}
    for base in node.bases:
        base = base.value if isinstance(base, ast.Subscript) else base
        if base.id in STUBS:
            found.update(methods(base.id))
    own = {}
    for function in node.body:
        if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
            own.setdefault(function.name, set()).update(parameters(function))
    return {**found, **own}


def public(cls):
    """Returns the public names that a class has from this package, rather than from Python's mappings."""
    own = [base for base in cls.__mro__ if base.__module__ == _database.__name__]
    return {name for base in own for name in vars(base) if not name.startswith("_")}


def test_every_name_is_exported():
    exported = {alias.asname for node in parse("__init__.pyi") for alias in node.names}
    assert exported == set(wollemi.__all__)


def test_classes_have_the_methods_of_their_stubs_and_no_others():
    for name in CLASSES:
        cls, declared = getattr(_database, name), methods(name)
        assert [method for method in declared if not hasattr(cls, method)] == [], name
        inherited = dir(collections.abc.MutableMapping) if issubclass(cls, collections.abc.Mapping) else []
        assert public(cls) - set(declared) - set(inherited) == set(), name


def test_parameters_are_those_of_the_stubs():
    functions = [("open", _database.open, parameters(STUBS["open"]))]
    for name in CLASSES:
        cls = getattr(_database, name)
        for method, declared in methods(name).items():
            function = inspect.getattr_static(cls, method)
            if not method.startswith("_") and not isinstance(function, property):
                functions.append((f"{name}.{method}", getattr(cls, method), declared))
    for name, function, declared in functions:
        assert set(inspect.signature(function).parameters) - {"self"} == declared, name
