import pytest

pytest.register_assert_rewrite("dragoman.store.conformance")  # so that a failure there says what was unequal
