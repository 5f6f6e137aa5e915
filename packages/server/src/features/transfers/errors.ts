import { defineErrors } from '../../platform/errors.ts'

export const fail = defineErrors({
  'transfer-not-found': { status: 404, title: 'Transfer Not Found', detail: 'No such transfer.' },
  'wallet-not-found': { status: 422, title: 'Wallet Not Found', detail: 'No such managed wallet or child address.' },
  'token-not-supported': {
    status: 422,
    title: 'Token Not Supported',
    detail: 'A token that the service does not know on that chain.',
  },
  'insufficient-balance': {
    status: 422,
    title: 'Insufficient Balance',
    detail:
      'The wallet does not have what the transfer and its gas need; required, available and held (until its sender is screened) say what of which token.',
  },
  'recipient-flagged': {
    status: 422,
    title: 'Recipient Flagged',
    detail: 'The recipient is on a sanctions list; nothing is sent there.',
  },
  'transfer-reverted': {
    status: 422,
    title: 'Transfer Reverted',
    detail: 'The chain refused the transfer; nothing but gas was spent.',
  },
  'no-route': {
    status: 422,
    title: 'No Route',
    detail: 'No partner takes this amount of these tokens between these chains; reason says why.',
  },
  'partner-unavailable': {
    status: 503,
    title: 'Partner Unavailable',
    detail: 'The partner that this needs is not configured, or does not answer as it must. Nothing was moved.',
  },
})
