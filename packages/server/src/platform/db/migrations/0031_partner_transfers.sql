-- Transfers that a partner carries to another token or another chain: what it promised, and what became of it.

alter table transfers
  add column partner text,
  -- What the partner needs to know its quote again.
  add column partner_reference text,
  -- No step is given a nonce from then on.
  add column quote_expires_at timestamptz,
  add column to_decimals smallint,
  -- What is expected to arrive, and the least that was promised; then what arrived.
  add column raw_out numeric(78, 0),
  add column raw_out_min numeric(78, 0),
  add column raw_received numeric(78, 0),
  -- Address of the token that arrived where it is another than was asked for.
  add column received_token text,
  -- The partner's own word, as it was said last.
  add column partner_status text,
  -- In a block the money has left the wallet.
  add column left_at timestamptz,
  -- When it is looked at next: for a step that has to be tried first, or for what the partner says.
  add column look_at timestamptz,
  add column destination_tx_hash text,
  add column refund_tx_hash text,
  add column refunded_at timestamptz,
  add constraint transfers_partner_whole check (
    (partner is null) = (route = 'direct') and (partner is null or
      (partner_reference is not null and quote_expires_at is not null and to_decimals is not null and raw_out is not null and raw_out_min is not null))
  );
create index transfers_to_look_at on transfers (look_at) where look_at is not null;

-- approve: the partner's contract may take the amount. partner: its call. claim: the master has what waits on the other chain delivered.
alter table transfer_steps drop constraint transfer_steps_kind_check;
alter table transfer_steps add constraint transfer_steps_kind_check check (kind in ('top-up', 'send', 'approve', 'partner', 'claim'));
alter table transfer_steps
  -- What the chain took for it, once a block has it.
  add column raw_fee numeric(78, 0) not null default 0,
  -- At the network's confirmation depth, or displaced.
  add column done_at timestamptz;
