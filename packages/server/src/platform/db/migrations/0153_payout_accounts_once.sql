-- A partner's account belongs to one bank account: payouts to an account of another would reach its owner.
create unique index payout_accounts_once on payout_accounts (partner, account_id) where removed_at is null;
