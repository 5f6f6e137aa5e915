-- What a partner owes after it failed, and which of its messages is whose.

alter table transfers
  -- When the partner first said that it fails: how long its refund is waited for counts from then.
  add column failing_since timestamptz,
  -- When the refund of a transfer that ended without it is asked for next; null: there is none, or nobody asks any more.
  add column refund_look_at timestamptz,
  -- What Circle delivers on the other chain for this transfer, and for no other: its nonce.
  add column partner_message text;
create index transfers_refund_to_look_at on transfers (refund_look_at) where refund_look_at is not null;
create unique index transfers_partner_message on transfers (to_network, partner_message) where partner_message is not null;
