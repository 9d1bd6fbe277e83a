import pytest

from broker_sim.errors import ConfigError
from broker_sim.security import ANONYMOUS, KafkaPrincipal


@pytest.mark.parametrize("name", ["billing", "", "CN=a,O=b:c"])
def test_the_text_of_a_principal_is_read_back(name):
    principal = KafkaPrincipal("User", name)

    assert str(principal) == f"User:{name}"
    assert KafkaPrincipal.parse(str(principal)) == principal


@pytest.mark.parametrize("text", ["", "billing", ":billing"])
def test_a_text_without_a_type_is_refused(text):
    with pytest.raises(ConfigError, match="principalType:principalName"):
        KafkaPrincipal.parse(text)


def test_unauthenticated_client_is_anonymous():
    assert str(ANONYMOUS) == "User:ANONYMOUS"
