import pytest

pytest.register_assert_rewrite("tests.store.conformance")  # so that a failure there says what was unequal
