import { defineErrors } from '../../platform/errors.ts'

export const failLegacy = defineErrors({
  'coin-not-available': {
    status: 422,
    title: 'Coin Not Available',
    detail: 'The coin does not exist in this environment; available lists those that do.',
    causes: ['The legacy wallet has fixed coins for each environment, and `coin` is not one of them here.'],
    fix: 'Send one of the coins that `available` lists. For any other token use a managed wallet (`POST /wallet-infra/master-wallets`).',
  },
})

const notFound = { title: 'Wallet Not Found', detail: 'No such wallet.' }

export const fail = defineErrors({
  'wallet-not-found': {
    status: 404,
    ...notFound,
    causes: [
      'This organisation has no wallet with this id in this environment. A test key does not see live wallets.',
      'The id is of another kind: `byw_…` is a wallet of your own, `mwt_…` a managed wallet, `cad_…` a child address.',
      'A wallet of your own was deleted, or the organisation has no legacy wallet yet (`POST /wallets` makes it).',
    ],
    fix: 'Take the id from `GET /wallet-infra/byo-wallets` or `GET /wallet-infra/master-wallets`, called with the same API key.',
  },
  'child-address-not-found': {
    status: 404,
    title: 'Child Address Not Found',
    detail: 'The wallet has no such child address.',
    causes: [
      'The wallet `mwt_…` in the path has no child address with this `cad_…`.',
      'The address was derived after the backup from which the database was restored.',
    ],
    fix: 'List the children with `GET /wallet-infra/master-wallets/{id}/child-addresses`. After a restore the operator brings an address back with `purser admin recover-child`.',
  },
  'child-addresses-exhausted': {
    status: 409,
    title: 'Child Addresses Exhausted',
    detail: 'The wallet has no remaining addresses to derive. Create another master wallet.',
    causes: ['All 2,147,483,648 indices that BIP-32 has below one wallet were derived.'],
    fix: 'Make another master wallet (`POST /wallet-infra/master-wallets`) and derive there.',
  },
  'wallet-not-empty': {
    status: 409,
    title: 'Wallet Not Empty',
    detail:
      'The wallet or a child address of it has a balance that is not frozen, of which holdings lists some, or a transfer or sweep that is not final. Move the balance first, or wait.',
    causes: [
      'The wallet or one of its child addresses has a balance of a token or of the coin on a network; `holdings` lists up to ten. A balance of which all is frozen does not count.',
      'A transfer, sweep or withdrawal of the wallet is not final yet, in which case `holdings` may be empty.',
    ],
    fix: 'Send the balances elsewhere (`POST /wallet-infra/master-wallets/{id}/sweep` collects the children, then `POST /wallet-infra/transfer`), wait until they are `confirmed`, and retire again.',
  },
  'wallet-retired': {
    status: 409,
    title: 'Wallet Retired',
    detail: 'The wallet is retired. Restore it first.',
    causes: [
      'Somebody retired this master wallet (`provisionStatus` is `retired`), and a retired wallet derives no addresses and starts no sweep.',
    ],
    fix: 'Restore it with `POST /wallet-infra/master-wallets/{id}/restore`, or use another wallet.',
  },
  'wallet-already-registered': {
    status: 409,
    title: 'Wallet Already Registered',
    detail: 'The address is registered on this network already.',
    causes: [
      'The organisation has this address on this network already. In test, `base` and `base-sepolia` are the same network.',
    ],
    fix: 'Use the wallet that exists: `detail` has its id, and `GET /wallet-infra/byo-wallets` lists it. To offer other tokens, delete it and register it again with other `supportedTokens`.',
  },
  'token-not-supported': {
    status: 422,
    title: 'Token Not Supported',
    detail: 'The token is not known on that chain, or the operation does not take it.',
    causes: [
      '`supportedTokens` names a symbol that the service does not know on `chain`; symbols are spelled as in `GET /wallet-infra/chains/{chain}/tokens`, and differ between networks.',
    ],
    fix: 'Read `errors`, which lists the known symbols, and send those.',
  },
})

/** Refusals of a wallet that the body names: 422, where a wallet in the path would be 404. */
export const failNamed = defineErrors({
  'wallet-not-found': {
    status: 422,
    ...notFound,
    causes: [
      'This key sees no wallet with this `walletId` (or one of `otherWalletIds`): it belongs to another organisation or environment, or was deleted.',
      'An address was sent where an id is expected.',
    ],
    fix: 'Send the `id` of a wallet, `byw_…`, `mwt_…` or `cad_…`. In a shop, compare the setting that holds the wallet with the environment of the API key.',
  },
  'wallet-flagged': {
    status: 422,
    title: 'Wallet Flagged',
    detail: 'Screening flagged the address of this wallet; it cannot receive payments. Use another wallet.',
    causes: [
      'Screening found the wallet’s address on a sanctions list, so `amlStatus` is `flagged` and `isActive` false.',
    ],
    fix: 'Register another receiving address and offer that one. If the listing is wrong, ask the operator to check the source that flagged it; no API operation clears it.',
  },
  'wallet-retired': {
    status: 422,
    title: 'Wallet Retired',
    detail: 'The wallet is retired: it cannot receive payments or send money until it is restored.',
    causes: ['The managed wallet that the body names was retired, or it is a child address of one.'],
    fix: 'Name another wallet in `walletId` or `fromWalletId`, or restore this one first with `POST /wallet-infra/master-wallets/{id}/restore`.',
  },
})

/** Errors of using a wallet as the receiver of a payment, for the tables of operations that do. */
export const walletErrors = failNamed.table

/** Errors of using the legacy wallet; the path implies it, so that it is 404 while there is none. */
export const legacyErrors = { 'wallet-not-found': fail.table['wallet-not-found'], ...failLegacy.table }

export const failPolicy = defineErrors({
  'policy-denied': {
    status: 403,
    title: 'Policy Denied',
    detail: "The wallet's spend policy refuses this movement; see rule. Nothing was moved.",
    causes: [
      'The spend policy of the master wallet does not allow this movement. `rule` names the rule: `operation` or `token` (not in the policy), `recipient` (not on its list), `perTransaction`, `perHour`, `perDay` or `perMonth` (a cap; `cap` and `used` give its state).',
    ],
    fix: 'For a cap: send less, or wait until earlier movements leave the window. For the other rules: an owner or admin adds the operation, token or recipient on the wallet’s page of the dashboard (**Change the policy**), or the operator runs `purser admin set-policy`. `POST /wallet-infra/transfer/quote` shows `deniedBy` beforehand.',
  },
  'policy-loosening-denied': {
    status: 403,
    title: 'Policy Loosening Denied',
    detail:
      'An API key may only tighten a spend policy. errors lists what would be looser. An owner or admin loosens it in the dashboard, or the operator with purser admin set-policy.',
    causes: [
      'An API key sent a policy that allows more than the present one in at least one place: a higher cap, another recipient, token or operation, a higher `approvalAbove`, or a rule left out. The whole policy was refused.',
    ],
    fix: 'Read `errors`, which names each looser place. Send a policy that only tightens, or have an owner or admin who signed in within ten minutes change it in the dashboard; the operator has `purser admin set-policy`.',
  },
})

/** Errors of an operation that moves money out of a managed wallet, for its table. */
export const policyErrors = { 'policy-denied': failPolicy.table['policy-denied'] }
