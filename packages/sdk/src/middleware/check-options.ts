import {
  must,
  mustBooleans,
  mustCount,
  mustFunctions,
  mustList,
  mustNames,
  mustOptions,
  mustTexts,
  mustWebAddress,
  type Named,
} from '../check.ts'
import { clientOptions } from '../client.ts'
import type { PayOptions, RouteDefaults, WalletOptions } from './options.ts'
import { sessionSecondsOf } from './sessions.ts'

const walletIdPattern = /^(?:byw|mwt|cad)_[0-9a-z]+$/
const pricePattern = /^\d{1,60}(?:\.\d{1,60})?$/

const routeDefaults: Named<RouteDefaults> = {
  description: true,
  mimeType: true,
  onPending: true,
  holdMsMax: true,
  bodyBytesMax: true,
  freeMethods: true,
  cors: true,
  protocols: true,
  credentialHeader: true,
  acceptSessions: true,
  sessionTtl: true,
}

/** The options of a wallet, and so of all its routes. */
export const walletOptions: Named<WalletOptions> = {
  walletId: true,
  otherWalletIds: true,
  publicUrl: true,
  ...clientOptions,
  ...routeDefaults,
  signOffers: true,
  challengeBatch: true,
  replayTtlMs: true,
  registry: true,
  keptBytesMax: true,
  keptMsMax: true,
  abandonedRunsMax: true,
  onUndelivered: true,
  onFault: true,
}

/** The options of one route. */
export const payOptions: Named<PayOptions<unknown>> = {
  price: true,
  currency: true,
  ...routeDefaults,
  clientIp: true,
  bindBody: true,
}

/** Throws a `TypeError` with the option, its value and the remedy, for an option that makes payments impossible. */
export function checkWalletOptions(options: WalletOptions): void {
  mustOptions(options, 'The first argument')
  const { walletId, otherWalletIds = [], publicUrl, signOffers, registry } = options
  must(
    isWalletId(walletId),
    'walletId',
    walletId,
    'Set it to the id of one of your wallets, such as byw_01h455vb4pex5vsknk084sn02q.',
  )
  const isShort = Array.isArray(otherWalletIds) && otherWalletIds.length <= 3
  must(isShort, 'otherWalletIds', otherWalletIds, 'List at most three wallet ids.')
  for (const id of otherWalletIds)
    must(isWalletId(id), 'otherWalletIds', id, 'Each must be the id of one of your wallets.')
  if (publicUrl !== undefined) mustWebAddress('publicUrl', publicUrl, 'https://api.example.com')
  const { challengeBatch, replayTtlMs, keptBytesMax, keptMsMax, abandonedRunsMax } = options
  mustCount('challengeBatch', challengeBatch, 1)
  mustCount('abandonedRunsMax', abandonedRunsMax, 1)
  for (const [name, value] of Object.entries({ replayTtlMs, keptBytesMax, keptMsMax })) mustCount(name, value, 0)
  mustBooleans({ signOffers, registry })
  mustFunctions({ onFault: options.onFault, onUndelivered: options.onUndelivered })
  checkRouteOptions(options)
}

/** The price of a route, or of one request to it. */
export function checkPrice(price: unknown): asserts price is string {
  const remedy = 'Give US dollars as text, such as "0.01", without a currency sign.'
  must(typeof price === 'string' && pricePattern.test(price), 'price', price, remedy)
}

/** Throws for options with which a route cannot be sold. A price that depends on the request is checked per request. */
export function checkPayOptions<R>(options: PayOptions<R>): void {
  mustOptions(options, 'The first argument')
  if (typeof options.price !== 'function') checkPrice(options.price)
  const { currency, clientIp, bindBody } = options
  must(currency === undefined || currency === 'USD', 'currency', currency, 'Prices are in USD.')
  mustFunctions({ clientIp, bindBody })
  checkRouteOptions(options)
}

function checkRouteOptions(options: RouteDefaults): void {
  const { onPending, protocols, holdMsMax, bodyBytesMax, sessionTtl, cors, credentialHeader } = options
  mustTexts({ description: options.description, mimeType: options.mimeType })
  mustList('freeMethods', options.freeMethods, 'List methods, such as ["HEAD"].')
  mustBooleans({ acceptSessions: options.acceptSessions })
  const isHeader = [undefined, 'Authorization', 'Payment-Authorization'].includes(credentialHeader)
  must(isHeader, 'credentialHeader', credentialHeader, 'Give "Authorization" or "Payment-Authorization".')
  const isPending = onPending === undefined || onPending === 'release' || onPending === 'hold'
  must(isPending, 'onPending', onPending, 'Give "release" or "hold".')
  const isList = protocols === undefined || (Array.isArray(protocols) && protocols.length > 0)
  const areKnown = isList && (protocols ?? []).every((one) => one === 'x402' || one === 'mpp')
  must(areKnown, 'protocols', protocols, 'Use "x402", "mpp" or both. With neither, no payment is possible.')
  mustCount('holdMsMax', holdMsMax, 0)
  mustCount('bodyBytesMax', bodyBytesMax, 0)
  if (cors !== undefined && cors !== null)
    mustNames('cors', cors, ['origins', 'methods', 'headers', 'maxAgeSeconds'], 'option')
  const origins = cors?.origins
  const isCors = cors === undefined || origins === '*' || Array.isArray(origins)
  must(isCors, 'cors.origins', origins, 'Give "*" or a list of origins.')
  sessionSecondsOf(sessionTtl)
}

function isWalletId(value: unknown): boolean {
  return typeof value === 'string' && walletIdPattern.test(value)
}
