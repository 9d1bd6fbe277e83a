"""Principals of certificates; the rules and names are those of Kafka's own tests and documents."""

import pytest

from broker_sim.errors import ConfigError
from broker_sim.security.ssl_principal_mapper import SslPrincipalMapper, distinguished_name

RULES = (
    "RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/L, "
    "RULE:^CN=(.*?), *OU=(.*?), *O=(.*?), *L=(.*?), *ST=(.*?), *C=(.*?)$/$1@$2/U,"
    "RULE:^.*[Cc][Nn]=([a-zA-Z0-9.]*).*$/$1/L, DEFAULT"
)


@pytest.mark.parametrize(
    ("rules", "distinguished", "name"),
    [
        ("DEFAULT", "CN=billing,O=x", "CN=billing,O=x"),
        (RULES, "CN=Duke,OU=ServiceUsers,O=Org,C=US", "duke"),
        (RULES, "CN=duke,OU=SME,O=mycp,L=Fulton,ST=MD,C=US", "DUKE@SME"),
        (RULES, "cn=JohnDoe,ou=Sales", "johndoe"),
        (RULES, "OU=JavaSoft,O=Sun", "OU=JavaSoft,O=Sun"),
        ("RULE:CN=(.*?),OU=(.*)/$1-$2-$3/", "CN=a,OU=b", "a-b-$3"),
        ("RULE:CN=(.*)/$12/", "CN=a", "a2"),
        (r"RULE:CN=(\w+)/\$1\/x/", "CN=a", "$1/x"),
        ("RULE:CN=other/x/", "CN=a", None),
        (r"RULE:CN=(\w+)/$1/", "CN=a,OU=b", None),
        ("", "CN=a", None),
    ],
)
def test_rules(rules, distinguished, name):
    assert SslPrincipalMapper(rules).name_of(distinguished) == name


@pytest.mark.parametrize("rules", ["default", "RULE:", "RULE:a/b", "RULE:(/x/", "DEFAULT,x"])
def test_invalid_rule_is_rejected(rules):
    with pytest.raises(ConfigError, match="Invalid rule"):
        SslPrincipalMapper(rules)


def test_names_are_written_as_java_writes_them():
    subject = (
        (("countryName", "US"),),
        (("organizationName", 'a,b "c"'),),
        (("organizationalUnitName", " #x "), ("commonName", "y")),
        (("emailAddress", "a@b"),),
    )
    expected = r"1.2.840.113549.1.9.1=#1603614062,OU=\ #x\ +CN=y,O=a\,b \"c\",C=US"
    assert distinguished_name(subject) == expected
