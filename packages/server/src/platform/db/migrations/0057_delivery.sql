-- Delivery: a paid request is served once.

alter table payments
  -- What the caller said at verify, for one that reports delivery: the body's digest and the id in the x402 offer. Null for all
  -- others: their payments count as delivered when they are settled.
  add column delivery jsonb,
  -- When the caller reported that the answer was handed to the payer's connection.
  add column delivered_at timestamptz,
  -- When the answer was handed out by a redemption.
  add column redeemed_at timestamptz,
  -- Who may hand out the answer now. While it is null and redemption_until is not, the first handler may still do so.
  add column redemption_token text,
  add column redemption_until timestamptz,
  -- How often the handler may have run again.
  add column reruns smallint not null default 0;
