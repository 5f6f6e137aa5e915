-- A relay that is only watched is sent by somebody else. That may be a seller of the same deployment, whose payment has a relay of its own with
-- the nonce. So a nonce is taken once among the relays that are sent, and once among those that are watched.
alter table relays add column is_watched boolean not null default false;
update relays set is_watched = true where purpose = 'transfers.payments';
