"""Addresses of storages: whatever the password holds, nothing of it is shown."""

from hypothesis import given
from hypothesis import strategies as st

from tuner.study.databases.storage_url import show_url

LETTERS = "XYZ89"
"""Of passwords alone; ports and names have others."""
PASSWORDS = st.text(st.sampled_from(f"{LETTERS}@/?:#&=%,.[] "), min_size=1)
SCHEMES = st.sampled_from(
    ("postgresql://", "postgresql+psycopg://", "grpc://", "mysql://", "postgresql:/", "")
)
HOSTS = st.sampled_from(("db", "db:5432", "db1,db2:5432", "10.0.0.1", "[::1]:5432", ""))
PATHS = st.sampled_from(("", "/", "/tuner", "/tuner?sslmode=require", "/tuner?host=/run/db", "?user=tuner"))


def is_shown(password_of: str) -> bool:
    return any(letter in show_url(password_of) for letter in LETTERS)


@given(SCHEMES, PASSWORDS, HOSTS, PATHS)
def test_a_password_beside_the_user_is_not_shown(scheme, password, host, path):
    assert not is_shown(f"{scheme}tuner:{password}@{host}{path}")


@given(SCHEMES, st.sampled_from(("", "tuner@", "tuner:XYZ@")), HOSTS, PATHS, PASSWORDS)
def test_a_password_in_the_query_is_not_shown(scheme, user, host, path, password):
    begun = f"{scheme}{user}{host}{path}"
    assert not is_shown(f"{begun}{'&' if '?' in begun else '?'}password={password}&sslmode=require")


@given(SCHEMES, PASSWORDS.filter(lambda password: "@" not in password))  # what follows one is a host
def test_a_password_without_a_host_is_not_shown(scheme, password):
    assert not is_shown(f"{scheme}tuner:X{password}")


@given(SCHEMES.filter(bool), HOSTS, st.sampled_from(("", "/tuner")))
def test_where_a_storage_is_is_shown(scheme, host, path):
    assert show_url(f"{scheme}tuner:secret@{host}{path}?sslmode=require").endswith(f"{host}{path}")


def test_a_password_that_ends_in_the_query_does_not_take_the_place_of_the_host():
    assert show_url("postgresql://db/tuner?user=t&password=p@ss1") == "postgresql://db/tuner"
