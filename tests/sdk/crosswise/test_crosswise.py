"""What the programs of all SDKs see of each other, and what becomes of their instances. The stages follow each other."""

import pytest
from agents import BY_HTTP, COMMANDS

# By when an SDK has registered again: those of Python look every 30 s whether they have to; that of Rust waits twice as long
# after each attempt that failed; the others look every few seconds.
BACK_WITHIN = {"python_grpc_2_0": 45.0, "python_grpc_3": 45.0, "rust": 40.0, **dict.fromkeys(BY_HTTP, 30.0)}
EACH = pytest.mark.parametrize("sdk", COMMANDS)


@EACH
def test_it_is_told_of_all_others(gathered, sdk):
    assert gathered[sdk] is not None


@EACH
def test_it_registers_again_after_a_restart_of_the_server(restarted, sdk):
    back, _ = restarted
    assert back[sdk] is not None and back[sdk] <= BACK_WITHIN.get(sdk, 20.0), back


@EACH
def test_it_is_told_of_changes_again_after_the_restart(restarted, sdk):
    _, told = restarted
    assert told[sdk] is not None and told[sdk] <= BACK_WITHIN.get(sdk, 20.0), told


@EACH
def test_a_killed_program_is_gone(killed, sdk):
    """At once where it held a connection; by its lease of 4 s where it beat."""
    gone, _ = killed
    assert gone[sdk] is not None and gone[sdk] < (15.0 if sdk in BY_HTTP else 2.0), gone


@EACH
def test_the_others_are_told_that_it_is_gone(killed, sdk):
    _, told = killed
    assert None not in told[sdk].values(), told[sdk]


@EACH
def test_a_program_that_hangs_is_gone_within_30_s(frozen, sdk):
    gone, _, _ = frozen
    assert gone[sdk] is not None and gone[sdk] < 30.0, gone


@EACH
def test_a_program_that_hung_comes_back(frozen, sdk):
    _, back, _ = frozen
    assert back[sdk] is not None and back[sdk] <= BACK_WITHIN.get(sdk, 20.0), back


@EACH
def test_a_program_that_hung_is_told_of_changes_again(frozen, sdk):
    _, _, told = frozen
    assert told[sdk] is not None and told[sdk] <= BACK_WITHIN.get(sdk, 20.0), told
