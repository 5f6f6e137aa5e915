-- A payment whose URL the service fetches.

alter table wallet_payments
  -- Until when the process that paid may still wait for the seller; null if the caller sends the credential itself.
  add column fetch_until timestamptz,
  -- What the seller's response to the credential says; null while none is known.
  add column outcome text check (outcome in ('paid', 'refused', 'unknown')),
  add column response_status int;
