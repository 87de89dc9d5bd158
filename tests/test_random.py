import numpy as np
import pytest

from sobolev._random import check_generator, spawn


def test_int_and_equal_generators_agree():
    draws = [
        check_generator(random_state).random(5)
        for random_state in (7, np.int64(7), np.random.default_rng(7), np.random.SeedSequence(7))
    ]
    for draw in draws[1:]:
        np.testing.assert_array_equal(draw, draws[0])


def test_generator_is_returned_as_it_is():
    rng = np.random.default_rng(0)
    assert check_generator(rng) is rng


def test_none_gives_fresh_generators():
    assert check_generator(None).random() != check_generator(None).random()


def test_random_state_is_repeatable_and_moves_on():
    random_state = np.random.RandomState(0)
    first, second = (check_generator(random_state).random() for _ in range(2))
    assert first == check_generator(np.random.RandomState(0)).random()
    assert first != second


def test_child_does_not_depend_on_how_many_are_spawned():
    few, many = spawn(3, 2), spawn(3, 20)
    assert [rng.random() for rng in few] == [rng.random() for rng in many[:2]]
    assert len({rng.random() for rng in many}) == 20


def test_spawning_twice_from_a_generator_gives_new_children():
    rng = np.random.default_rng(0)
    assert spawn(rng, 1)[0].random() != spawn(rng, 1)[0].random()


@pytest.mark.parametrize("wrong", ["0", 1.5, np.random])
def test_wrong_type_is_named(wrong):
    with pytest.raises(TypeError, match="random_state must be"):
        check_generator(wrong)


def test_negative_seed_is_named():
    with pytest.raises(ValueError, match="random_state=-1"):
        check_generator(-1)
