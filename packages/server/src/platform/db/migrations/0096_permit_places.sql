-- Logs of transactions that settled permits through another contract. Each proves one permit, and one permit has one of them.

create table permit_places (
  network text not null,
  transaction_hash text not null,
  -- Index of the proxy's log in the transaction's receipt.
  place int not null,
  -- In lower case.
  owner text not null,
  nonce text not null,
  primary key (network, transaction_hash, place),
  unique (network, owner, nonce)
);
