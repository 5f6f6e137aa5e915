-- The relays of a transaction are found while it carries them and after it has settled them.
create index concurrently if not exists relays_by_transaction on relays (transaction_id) where state in ('included', 'settled');
drop index concurrently if exists relays_in_transaction;
-- The money of an organization that is on hold without a deposit in screening.
create index concurrently if not exists tainted_places_by_tenant on tainted_places (organisation_id, environment, wallet_id) where raw_frozen > 0;
create index concurrently if not exists opening_amounts_by_tenant on opening_amounts (organisation_id, environment, wallet_id) where raw_amount > 0;
