from seawall.edges.gateway.sessions import Sessions


def test_a_session_is_found_by_its_client_and_id_together() -> None:
    sessions = Sessions(10)

    shop = sessions.session_of("shop", "chat")

    assert sessions.session_of("shop", "chat") is shop
    assert sessions.session_of("other", "chat") is not shop
    assert (shop.caller, shop.id) == ("shop", "chat")


def test_one_client_cannot_push_out_the_sessions_of_another() -> None:
    sessions = Sessions(4)
    kept = sessions.session_of("shop", "chat")
    flood = [sessions.session_of("other", str(at)) for at in range(10)]

    assert len(sessions) == 4
    assert sessions.session_of("shop", "chat") is kept
    assert sessions.session_of("other", "9") is flood[9]
    assert sessions.session_of("other", "6") is not flood[6]


def test_what_a_client_used_longest_ago_goes_first() -> None:
    sessions = Sessions(2)
    first, _ = sessions.session_of("shop", "a"), sessions.session_of("shop", "b")
    sessions.session_of("shop", "a")
    sessions.session_of("shop", "c")

    assert sessions.session_of("shop", "a") is first
