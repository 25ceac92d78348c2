package notify

import (
	"testing"

	"berth/internal/docpage"
)

func TestMessagesPage_HasTheFieldsOfEventsAndNotifications(t *testing.T) {
	t.Parallel()
	docpage.CompareFields[wireEvent](t, docpage.Messages, "### Fields of an event for Nova")
	docpage.CompareFields[envelope](t, docpage.Messages, "### Fields of a notification")
}
