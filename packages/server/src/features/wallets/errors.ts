import { defineErrors } from '../../platform/errors.ts'

export const failLegacy = defineErrors({
  'coin-not-available': {
    status: 422,
    title: 'Coin Not Available',
    detail: 'The coin does not exist in this environment; available lists those that do.',
  },
})

const notFound = { title: 'Wallet Not Found', detail: 'No such wallet.' }

export const fail = defineErrors({
  'wallet-not-found': { status: 404, ...notFound },
  'child-address-not-found': {
    status: 404,
    title: 'Child Address Not Found',
    detail: 'The wallet has no such child address.',
  },
  'child-addresses-exhausted': {
    status: 409,
    title: 'Child Addresses Exhausted',
    detail: 'The wallet has no remaining addresses to derive. Create another master wallet.',
  },
  'wallet-not-empty': {
    status: 409,
    title: 'Wallet Not Empty',
    detail:
      'The wallet or a child address of it has a balance, of which holdings lists some, or a transfer or sweep that is not final. Move the balance first, or wait.',
  },
  'wallet-retired': {
    status: 409,
    title: 'Wallet Retired',
    detail: 'The wallet is retired. Restore it first.',
  },
  'wallet-already-registered': {
    status: 409,
    title: 'Wallet Already Registered',
    detail: 'The address is registered on this network already.',
  },
  'token-not-supported': {
    status: 422,
    title: 'Token Not Supported',
    detail: 'supportedTokens contains a token that the service does not know on this chain.',
  },
})

/** Refusals of a wallet that the body names: 422, where a wallet in the path would be 404. */
export const failNamed = defineErrors({
  'wallet-not-found': { status: 422, ...notFound },
  'wallet-flagged': {
    status: 422,
    title: 'Wallet Flagged',
    detail: 'Screening flagged the address of this wallet; it can take no payment.',
  },
  'wallet-retired': {
    status: 422,
    title: 'Wallet Retired',
    detail: 'The wallet is retired: it takes no payment and sends nothing until it is restored.',
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
  },
  'policy-loosening-denied': {
    status: 403,
    title: 'Policy Loosening Denied',
    detail:
      'An API key may only tighten a spend policy. errors lists what would be looser. An owner or admin loosens it in the dashboard, or the operator with purser admin set-policy.',
  },
})

/** Errors of an operation that moves money out of a managed wallet, for its table. */
export const policyErrors = { 'policy-denied': failPolicy.table['policy-denied'] }
