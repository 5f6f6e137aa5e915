import { defineErrors } from '../../platform/errors.ts'

export const fail = defineErrors({
  'organisation-not-found': {
    status: 404,
    title: 'Organisation Not Found',
    detail: 'No such organisation.',
    causes: ['The organisation was deleted, or the caller is not a member of it.'],
    fix: 'List your organisations with `GET /account` and name one of those.',
  },
  'organisation-not-empty': {
    status: 409,
    title: 'Organisation Not Empty',
    detail: 'The organisation has money or obligations; blockers lists them. Nothing was changed.',
    causes: [
      'A payment, transfer, refund, withdrawal or approval of either environment has not ended.',
      'A live managed wallet is not retired, received a whole token or more since it was retired, or is a legacy wallet with a balance.',
      'In live, a bank may return the money of a withdrawal (for 30 days), is to return it or holds it; a vault that was paid for is not sealed, or has a valid token; or a session that was paid for is valid.',
    ],
    fix: 'Read `blockers`: each has its `kind`, the `count` and up to ten `ids`. Wait for movements or cancel them (`POST /approvals/{id}/cancel`, `POST /payments/{id}/release`), empty and retire live wallets (`DELETE /wallet-infra/master-wallets/{id}`), seal or delete paid vaults, and wait for their tokens (24 hours at most) and for paid sessions (7 days at most) to expire; or refund their payments in full (`POST /payments/{id}/refund`). Then delete again.',
  },
  'person-required': {
    status: 403,
    title: 'Person Required',
    detail: 'This operation requires a signed-in person; an API key cannot call it.',
    causes: [
      'The request was made with an API key. Sign-ins belong to people, and only an owner who is signed in deletes an organisation.',
    ],
    fix: 'Sign in to the dashboard. Your sign-ins are under **Account**; an owner deletes the organisation under **Settings**.',
  },
  'invitation-not-found': {
    status: 404,
    title: 'Invitation Not Found',
    detail: 'No such invitation of this account.',
    causes: [
      'This account has no open invitation to this organisation. The invitation was sent to another account, was accepted or declined, or was withdrawn. The id of an invitation is the id of its organisation (`org_…`).',
    ],
    fix: 'List your invitations with `GET /account`. Ask an owner or admin for another one.',
  },
  'organisation-limit-reached': {
    status: 409,
    title: 'Organisation Limit Reached',
    detail:
      'An account can create at most 10 organisations; one that it gave away still counts, a deleted one for 31 days.',
    causes: ['The account behind the key created ten organisations, or owns or shares the quotas of ten.'],
    fix: 'Use one of them: an organisation has two environments and up to 50 keys in each. The operator can make more with `purser admin create-organisation`.',
  },
  'sign-up-closed': {
    status: 403,
    title: 'Sign-Up Closed',
    detail: 'This account may not create organisations here. Ask the operator for one.',
    causes: [
      'The account behind the call was admitted by an invitation, and was never the first owner of an organisation. Without `SIGN_UP=open` such an account makes none.',
    ],
    fix: 'Use the organisation that invited you, or ask the operator for one of your own (`purser admin create-organisation`).',
  },
  'member-not-found': {
    status: 404,
    title: 'Member Not Found',
    detail: 'No such member of this organisation.',
    causes: [
      'The organisation has no member with this `accountId`. The person left, or has not accepted the invitation.',
    ],
    fix: 'List the members with `GET /organisations/current/members`.',
  },
  'already-a-member': {
    status: 409,
    title: 'Already A Member',
    detail: 'The account is a member of this organisation already.',
    causes: ['The account has accepted an earlier invitation to this organisation.'],
    fix: 'The person is already a member. To change the role, send `PATCH /organisations/current/members/{accountId}`.',
  },
  'invitation-limit-reached': {
    status: 409,
    title: 'Invitation Limit Reached',
    detail:
      'An organisation has at most 100 open invitations. Withdraw one, or wait until one is accepted or declined.',
    causes: ['A hundred people whom the organisation invited have neither accepted nor declined.'],
    fix: 'List the members with `GET /organisations/current/members` and withdraw invitations (`"status": "invited"`) with `DELETE /organisations/current/members/{accountId}`.',
  },
  'last-owner': {
    status: 409,
    title: 'Last Owner',
    detail: 'An organisation must have an owner. Make another member an owner first.',
    causes: ['The change would remove or demote the only owner.'],
    fix: 'Give somebody else the role `owner` first, in the dashboard under **Members** or with `purser admin set-role`.',
  },
  'api-key-not-found': {
    status: 404,
    title: 'API Key Not Found',
    detail: 'No such API key.',
    causes: [
      'This organisation has no API key with this id in this environment. Send the key’s id (`key_…`), not its secret (`svc_…`).',
    ],
    fix: 'List the keys with `GET /organisations/current/api-keys`. The operator revokes any key with `purser admin revoke-key`.',
  },
  'environment-not-allowed': {
    status: 403,
    title: 'Environment Not Allowed',
    detail:
      'An API key creates keys of its own environment only. The operator, or an owner in the dashboard, creates the first live key.',
    causes: ['A test key requested a live key, or a live key a test key.'],
    fix: 'Use a key of the environment that you want. The first live key is made by an owner in the dashboard (switch it to **Live**, then **API keys**), or by the operator with `purser admin create-key --environment live`.',
  },
  'key-not-narrower': {
    status: 403,
    title: 'Key Not Narrower',
    detail: 'An API key creates only keys whose scopes and expiry do not exceed its own.',
    causes: [
      'The requested `scopes` contain one that the calling key lacks, or `expiresAt` is later than that of the calling key (or null).',
    ],
    fix: 'Request a subset of the calling key’s `scopes` and an end no later than its own; leave both out to get the same. An owner or admin makes a key with more in the dashboard.',
  },
  'api-key-limit-reached': {
    status: 409,
    title: 'API Key Limit Reached',
    detail: 'An organisation has at most 50 valid keys in an environment. Revoke one that is not used.',
    causes: ['The organisation has 50 keys in this environment that are neither revoked nor expired.'],
    fix: 'Revoke one: `GET /organisations/current/api-keys` shows `lastUsedAt` of each, and `DELETE /organisations/current/api-keys/{keyId}` revokes it. Give short-lived keys an `expiresAt`.',
  },
})
