-- What the chain is to be read for, by organisation, so that one organisation's backlog delays no other's rows.
create index relays_to_check_by_organisation on relays (network, organisation_id, check_at) where check_at is not null;
create index payments_to_check_by_organisation on payments (network, organisation_id, check_at) where check_at is not null;
