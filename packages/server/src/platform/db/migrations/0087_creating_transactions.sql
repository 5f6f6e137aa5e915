-- A transaction without a recipient creates a contract: its creation code carries a batch of relays.

alter table chain_transactions alter column to_address drop not null;
