package networkstore

var ForeignTurnOf = foreignTurnOf
