-- The list of approvals to check gives each organisation a share, however many due ones the others have.
create index concurrently if not exists transfers_to_revoke_by_organisation on transfers (from_network, organisation_id, revoke_at) where revoke_at is not null;
