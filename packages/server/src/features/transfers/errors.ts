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
    detail: 'The service does not know this token on that chain.',
  },
  'insufficient-balance': {
    status: 422,
    title: 'Insufficient Balance',
    detail:
      'The wallet has too little for the transfer and its gas; required, available and held (until the sender is screened) give the amounts of each token.',
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
      'The sanctions list is out of date and the on-chain oracle does not respond, so the recipient cannot be screened. Nothing was moved; retry later.',
  },
  'transfer-reverted': {
    status: 422,
    title: 'Transfer Reverted',
    detail: 'The chain refused the transfer; nothing but gas was spent.',
  },
  'no-route': {
    status: 422,
    title: 'No Route',
    detail: 'No partner supports this amount of these tokens between these chains; see reason.',
  },
  'price-too-low': {
    status: 422,
    title: 'Price Too Low',
    detail:
      'Less would arrive than minToAmount, than the quoted amount or, without either, than 98 % of a dollar for a dollar; see offered, minimum and token. Nothing was moved.',
  },
  'minimum-needed': {
    status: 422,
    title: 'Minimum Needed',
    detail: 'A swap between a coin and a token has no par value: send minToAmount or a quoteId.',
  },
  'quote-not-found': {
    status: 422,
    title: 'Quote Not Found',
    detail: 'No such quote, or a transfer has used it. Request a new one.',
  },
  'quote-expired': {
    status: 422,
    title: 'Quote Expired',
    detail: 'The quote is more than 60 seconds old. Request a new one.',
  },
  'quote-mismatch': {
    status: 422,
    title: 'Quote Mismatch',
    detail: 'The transfer differs from the quoted one; errors names the fields.',
  },
  'partner-unavailable': {
    status: 503,
    title: 'Partner Unavailable',
    detail: 'The partner is not configured, or does not respond correctly. Nothing was moved.',
  },
})
