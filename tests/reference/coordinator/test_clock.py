import pytest

from kassay.reference.coordinator.clock import Clock, stop


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def seen(clock):
    return []


def note(clock, seen, what):
    return lambda: seen.append((clock.now, what))


def test_what_is_due_at_one_moment_happens_in_the_order_asked_for(clock, seen):
    clock.after(10, note(clock, seen, "first"))
    clock.timer(note(clock, seen, "second")).start(10)
    clock.run(until=5)
    clock.after(5, note(clock, seen, "third"))
    clock.run(until=20)
    assert seen == [(10, "first"), (10, "second"), (10, "third")]


def test_a_timer_that_is_put_off_takes_its_place_when_it_comes_up(clock, seen):
    timer = clock.timer(note(clock, seen, "put off"))
    timer.start(5)
    timer.start(10)
    clock.after(10, note(clock, seen, "asked for before that"))
    clock.run(until=20)
    assert seen == [(10, "asked for before that"), (10, "put off")]


def test_what_is_to_be_done_at_once_is_done_in_the_same_moment(clock, seen):
    clock.after(3, lambda: clock.after(0, note(clock, seen, "at once")))
    clock.run(until=3)
    assert seen == [(3, "at once")]


def test_a_timer_started_again_runs_out_once_at_the_later_moment(clock, seen):
    timer = clock.timer(note(clock, seen, "out"))
    timer.start(10)
    clock.run(until=4)
    timer.start(20)
    clock.run(until=100)
    assert seen == [(24, "out")]


def test_a_timer_started_again_with_a_shorter_delay_runs_out_once_and_sooner(clock, seen):
    timer = clock.timer(note(clock, seen, "out"))
    timer.start(50)
    timer.start(10)
    clock.run(until=100)
    assert seen == [(10, "out")]


def test_a_cancelled_timer_never_runs_out_and_can_be_started_anew(clock, seen):
    timer = clock.timer(note(clock, seen, "out"))
    timer.start(10)
    timer.cancel()
    clock.run(until=30)
    assert seen == []
    timer.start(10)
    clock.run(until=60)
    assert seen == [(40, "out")]


def test_a_timer_can_start_itself_again(clock, seen):
    timer = clock.timer(lambda: (seen.append(clock.now), timer.start(10)))
    timer.start(10)
    clock.run(until=35)
    assert seen == [10, 20, 30]


def test_one_of_several_timers_is_stopped_and_forgotten(clock, seen):
    timers = {name: clock.timer(note(clock, seen, name)) for name in ("a", "b")}
    for timer in timers.values():
        timer.start(5)
    stop(timers, "a")
    stop(timers, "unknown")
    clock.run(until=10)
    assert seen == [(5, "b")]
    assert list(timers) == ["b"]
