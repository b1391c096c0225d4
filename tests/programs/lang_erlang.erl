%% Processes that spawn, send and count, with more schedulers than CPUs. The virtual machine runs on
%% small stacks of its own, and requires that every signal handler runs on an alternate stack.
-module(lang_erlang).
-export([main/0]).

work(Parent, 0) -> Parent ! done;
work(Parent, N) ->
    _ = lists:sum(lists:seq(1, 300)),
    Self = self(),
    spawn(fun() -> Self ! {answer, N} end),
    receive {answer, N} -> ok end,
    work(Parent, N - 1).

wait(0) -> ok;
wait(N) -> receive done -> wait(N - 1) end.

main() ->
    Self = self(),
    [spawn(fun() -> work(Self, 200) end) || _ <- lists:seq(1, 100)],
    wait(100),
    Table = ets:new(table, [public, {write_concurrency, true}]),
    Count = fun() -> [ets:update_counter(Table, K rem 7, 1, {K rem 7, 0}) || K <- lists:seq(1, 2000)], Self ! done end,
    [spawn(Count) || _ <- lists:seq(1, 64)],
    wait(64),
    128000 = lists:sum([V || {_, V} <- ets:tab2list(Table)]),
    io:format("ok lang_erlang~n"),
    halt().
