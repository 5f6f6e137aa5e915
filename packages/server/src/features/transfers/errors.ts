import { defineErrors } from '../../platform/errors.ts'
import { fundErrors } from '../funds/index.ts'

export const fail = defineErrors({
  'transfer-not-found': {
    status: 404,
    title: 'Transfer Not Found',
    detail: 'No such transfer.',
    causes: [
      'This organisation has no transfer with this id (`wtx_…` in the path, or `approvedPaymentId`) in this environment.',
    ],
    fix: 'List transfers with `GET /wallet-infra/transfers`. The `paymentId` of a payment from a managed wallet is a transfer’s id; the `pay_…` of a sale is not.',
  },
  'wallet-not-found': {
    status: 422,
    title: 'Wallet Not Found',
    detail: 'No such wallet.',
    causes: [
      'This organisation has no managed wallet or child address with this `fromWalletId` in this environment.',
      'It is a wallet of your own (`byw_…`): the service has no key for it and cannot send from it.',
    ],
    fix: 'Send `mwt_…` or `cad_…` from `GET /wallet-infra/master-wallets`.',
  },
  'wallet-retired': {
    status: 422,
    title: 'Wallet Retired',
    detail: 'The wallet is retired: it cannot receive payments or send money until it is restored.',
    causes: ['`fromWalletId` is a retired wallet, or a child address of one; it sends nothing.'],
    fix: 'Restore it with `POST /wallet-infra/master-wallets/{id}/restore`, send, and retire it again when it is empty.',
  },
  'token-not-supported': {
    status: 422,
    title: 'Token Not Supported',
    detail: 'The token is not known on that chain, or the operation does not take it.',
    causes: ['`fromToken` or `toToken` is not the symbol of a token on its chain; `errors` lists those that are.'],
    fix: 'Send a symbol from `GET /wallet-infra/chains/{chain}/tokens`. Symbols are upper and lower case as listed (`USDC`, `pathUSD`).',
  },
  ...fundErrors,
  'recipient-flagged': {
    status: 422,
    title: 'Recipient Flagged',
    detail: 'The recipient is on a sanctions list. Nothing was sent.',
    causes: ['The address that would receive the money is on a sanctions list. Nothing was signed.'],
    fix: 'Do not send there. If the listing is an error, the source of the list must correct it; the operator then runs `purser admin refresh-sanctions`.',
  },
  'screening-unavailable': {
    status: 503,
    title: 'Screening Unavailable',
    detail:
      'The sanctions list is out of date and the on-chain oracle does not respond, so the recipient cannot be screened. Nothing was moved; retry later.',
    causes: [
      'The sanctions list was not fetched for too long (`SANCTIONS_LIST_URL`), and the oracle contract on chain does not respond either. Money leaves only to recipients that were screened.',
    ],
    fix: 'Repeat in some minutes with the same `Idempotency-Key`. The operator runs `purser admin refresh-sanctions` and looks at the age of the list in the metrics.',
  },
  'transfer-reverted': {
    status: 422,
    title: 'Transfer Reverted',
    detail: 'The chain refused the transfer; see reason. At most gas was spent.',
    causes: [
      'The call was simulated before it was sent, or was in a block, and the token refused it; `reason` is the token’s own word. Frequent: the recipient or the wallet is on the token issuer’s block list, the token is paused, or the recipient is a contract that refuses it.',
    ],
    fix: 'Read `reason`. Send to another address or another token; the same transfer will be refused again.',
  },
  'no-route': {
    status: 422,
    title: 'No Route',
    detail: 'No partner supports this amount of these tokens between these chains; see reason.',
    causes: [
      'No configured partner bridges or swaps these tokens between these chains (`reason` `no-route`).',
      'The amount is too small for the partner’s fee (`amount-too-low`) or above its liquidity (`amount-too-high`).',
      'In the test environment no partner swaps; it bridges USDC only.',
    ],
    fix: 'For an amount, send more or split it. Otherwise send in two steps, for example bridge USDC and swap on the target chain, or keep the token and chain the same.',
  },
  'price-too-low': {
    status: 422,
    title: 'Price Too Low',
    detail:
      'The recipient would receive less than minToAmount, the quoted amount or, without either, 98 % of a dollar for each dollar. See offered, minimum and token. Nothing was moved.',
    causes: [
      'The partner’s price is worse than `minToAmount`, than the quote, or than 98 % where both tokens are worth a dollar. `offered` is what would arrive, `minimum` the least accepted.',
    ],
    fix: 'Request another quote and decide by its `toAmount`; accept a lower price only with your own `minToAmount`. Smaller amounts and later times often have better prices.',
  },
  'minimum-needed': {
    status: 422,
    title: 'Minimum Needed',
    detail: 'A swap between a coin and a token needs a minimum amount. Send minToAmount or a quoteId.',
    causes: [
      'The transfer swaps between a coin or token without a dollar value and another one, so the service cannot tell a fair price, and neither `minToAmount` nor `quoteId` was sent.',
    ],
    fix: 'Request `POST /wallet-infra/transfer/quote` and send its `quoteId`, or send `minToAmount`: the least that must arrive.',
  },
  'quote-not-found': {
    status: 422,
    title: 'Quote Not Found',
    detail: 'No such quote, or a transfer has used it. Request a new one.',
    causes: [
      '`quoteId` was used by another transfer, is of another organisation, or was deleted after it had expired.',
    ],
    fix: 'Request another quote and send its `quoteId` within 60 seconds. To retry a transfer after a lost response, send the same request with the same `Idempotency-Key`; a new request with the used quote is refused.',
  },
  'quote-expired': {
    status: 422,
    title: 'Quote Expired',
    detail: 'The quote is more than 60 seconds old. Request a new one.',
    causes: ['More than 60 seconds passed between the quote and the transfer.'],
    fix: 'Request another quote and use it at once. If a person has to look at it first, send `minToAmount` instead of `quoteId`.',
  },
  'quote-mismatch': {
    status: 422,
    title: 'Quote Mismatch',
    detail: 'The transfer differs from the quoted one; errors names the fields.',
    causes: [
      'The transfer names another wallet, token, chain, recipient or amount than the quote with this `quoteId`; `errors` names the fields.',
    ],
    fix: 'Send exactly the values of the quote, or request a quote for the values that you want.',
  },
  'partner-unavailable': {
    status: 503,
    title: 'Partner Unavailable',
    detail: 'The partner is not configured, or does not respond correctly. Nothing was moved.',
    causes: [
      'The operator has configured no partner for bridges and swaps, or for this environment.',
      'The partner did not respond, or requested calls that are not on the list of what is signed (`unsafe-call`).',
    ],
    fix: 'A transfer of one token on one chain needs no partner. For others, repeat in a minute with the same `Idempotency-Key`; the operator finds the settings under [Partners](/docs/partners).',
  },
})
