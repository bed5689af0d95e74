"""What becomes of the programs of all SDKs when one server of three goes. The stages follow each other."""

import pytest
from agents import COMMANDS

EACH = pytest.mark.parametrize("sdk", COMMANDS)


@EACH
def test_it_is_told_of_all_others(gathered, sdk):
    assert gathered[sdk] is not None


# Three times 40 s until what a dead member left is forgotten, and time to start.
@pytest.mark.timeout(400)
@EACH
def test_its_instance_is_never_missed_when_a_server_is_killed(killed, sdk):
    missed, _ = killed
    assert missed[sdk] == 0, missed


@EACH
def test_it_is_told_of_changes_after_a_server_was_killed(killed, sdk):
    _, told = killed
    assert told[sdk] is not None, told


@pytest.mark.timeout(200)
@EACH
def test_its_instance_is_never_missed_in_a_rolling_restart(rolled, sdk):
    missed, _ = rolled
    assert missed[sdk] == 0, missed


@EACH
def test_it_is_told_of_changes_after_a_rolling_restart(rolled, sdk):
    _, told = rolled
    assert told[sdk] is not None, told
