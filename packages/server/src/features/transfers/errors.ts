import { defineErrors } from '../../platform/errors.ts'

export const fail = defineErrors({
  'transfer-not-found': { status: 404, title: 'Transfer Not Found', detail: 'No such transfer.' },
  'wallet-not-found': { status: 422, title: 'Wallet Not Found', detail: 'No such managed wallet or child address.' },
  'wallet-retired': {
    status: 422,
    title: 'Wallet Retired',
    detail: 'The wallet is retired: it takes no payment and sends nothing until it is restored.',
  },
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
  'screening-unavailable': {
    status: 503,
    title: 'Screening Unavailable',
    detail:
      'The sanctions list is out of date and the on-chain oracle does not answer, so the recipient cannot be screened. Nothing was moved; retry later.',
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
  'price-too-low': {
    status: 422,
    title: 'Price Too Low',
    detail:
      'Less would arrive than minToAmount, than the quote promised or, without either, than 98 % of a dollar for a dollar; offered and minimum say how much of token. Nothing was moved.',
  },
  'minimum-needed': {
    status: 422,
    title: 'Minimum Needed',
    detail: 'Between a coin and a token there is no par: name minToAmount, or a quoteId.',
  },
  'quote-not-found': {
    status: 422,
    title: 'Quote Not Found',
    detail: 'No such quote, or a transfer has used it: ask for another.',
  },
  'quote-expired': {
    status: 422,
    title: 'Quote Expired',
    detail: 'The quote was given more than 60 seconds ago: ask for another.',
  },
  'quote-mismatch': {
    status: 422,
    title: 'Quote Mismatch',
    detail: 'The transfer is not the one that was quoted; errors names the fields that differ.',
  },
  'partner-unavailable': {
    status: 503,
    title: 'Partner Unavailable',
    detail: 'The partner that this needs is not configured, or does not answer as it must. Nothing was moved.',
  },
})
