-- The Idempotency-Key under which a facilitator payment's one success was answered; null where the caller sent none.
alter table payments add column answered_to text;
