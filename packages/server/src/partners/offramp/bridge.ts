import { formatAmount, networks, parseAmount } from '@purser/protocol'
import { z } from 'zod'
import type { Log } from '../../platform/log.ts'
import type { Outbound } from '../../platform/outbound.ts'
import { fail } from '../errors.ts'
import { type PartnerApi, type PartnerRequest, type PartnerSettings, requestPartner } from '../partner-request.ts'
import { readKeyedApi, type SettingsReader, withoutKey } from '../settings.ts'
import {
  accountOf,
  bankRails,
  depositOf,
  ExternalAccount,
  externalAccountBody,
  isFromAnother,
  isOfAnother,
  refusalOf,
  Transfer,
  trimZeros,
} from './bridge-messages.ts'
import { createBridgeMessages, readPublicKey } from './bridge-webhook.ts'
import type {
  Agreed,
  NewPayout,
  NotTaken,
  OffRamp,
  OffRampAdapter,
  Payout,
  PayoutFailure,
  PayoutReceipt,
  PayoutRefusal,
  PayoutState,
  RequestedPayout,
} from './port.ts'
import { whyNotReference } from './references.ts'

const name = 'bridge'
const hasCustomers = true
const feeDecimals = 18
const timeoutMsDefault = 15_000
const responseBytesMax = 262_144

/** Pays out through bridge.xyz: USDC on five chains to accounts in GBP, USD and EUR. It has no test network. */
export function createBridge(
  { outbound, log }: { readonly outbound: Outbound; readonly log: Log },
  settings: PartnerSettings,
): OffRamp {
  const api: PartnerApi = {
    outbound,
    name,
    baseUrl: settings.baseUrl,
    headers: { 'api-key': settings.apiKey },
    limits: { timeoutMs: settings.timeoutMs ?? timeoutMsDefault, bytesMax: responseBytesMax },
  }
  return {
    name,
    hasCustomers,
    whyNotTaken,
    whyNotReference,
    async createAccount(request) {
      const body = externalAccountBody(request)
      if (isRefusal(body)) return { ok: false, refusal: body }
      const response = await post(
        api,
        { path: accountsOf(request.customerId), key: request.key, body },
        ExternalAccount,
      )
      return response.ok ? { ok: true, value: accountOf(response.value) } : response
    },
    async deleteAccount({ customerId, accountId }) {
      const path = `${accountsOf(customerId)}/${encodeURIComponent(accountId)}`
      const response = await requestPartner(api, { method: 'DELETE', path }, z.unknown())
      if (response.ok || response.declined.status === 404) return
      throw failed(`bridge did not delete an account: ${response.declined.status}`)
    },
    createPayout: (request) => createPayout(api, log, request),
    readPayout: (payoutId, requested) => readPayout(api, log, payoutId, requested),
  }
}

async function createPayout(api: PartnerApi, log: Log, request: NewPayout): Promise<Agreed<Payout>> {
  const refusal = refusalBeforeRequest(request)
  if (refusal !== undefined) return { ok: false, refusal }
  const body = transferBody(request)
  const response = await post(api, { path: '/transfers', key: request.key, body }, Transfer)
  if (!response.ok) return response
  if (isOfAnother(response.value, request) || isFromAnother(response.value, request))
    throw failed('bridge answered with the transfer of another request')
  const payout = payoutOf(log, response.value, request)
  if (payout.awaitsDeposit && payout.deposit === undefined)
    throw failed('bridge requests a different deposit than agreed')
  return { ok: true, value: payout }
}

async function readPayout(
  api: PartnerApi,
  log: Log,
  payoutId: string,
  requested: RequestedPayout,
): Promise<Payout | undefined> {
  const path = `/transfers/${encodeURIComponent(payoutId)}`
  const response = await requestPartner(api, { method: 'GET', path }, Transfer)
  if (response.ok && response.value.id !== payoutId) throw failed('bridge answered with another transfer')
  if (response.ok && isOfAnother(response.value, requested)) {
    log.error({ partner: name, payoutId }, 'the partner shows a payout to somebody else than was requested')
    throw failed('bridge shows a transfer to somebody else than was requested')
  }
  if (response.ok) return payoutOf(log, response.value, requested)
  if (response.declined.status === 404) return undefined
  throw failed(`bridge refused to read a transfer: ${response.declined.status}`)
}

/** The account at Bridge, and the key that verifies its messages. */
export interface BridgeSettings extends PartnerSettings {
  readonly webhookPublicKey: string | undefined
}

/** Bridge pays out live withdrawals. It has one customer for each organisation. */
export const bridge: OffRampAdapter<{ readonly bridge?: BridgeSettings | undefined }> = {
  name,
  environment: 'live',
  hasCustomers,
  readAccount: (reader) => ({ bridge: readBridge(reader) }),
  open(deps, account) {
    if (account.bridge === undefined) return undefined
    const { webhookPublicKey } = account.bridge
    const messages = webhookPublicKey === undefined ? undefined : createBridgeMessages(webhookPublicKey)
    return { ...createBridge(deps, account.bridge), messages }
  },
}

function readBridge(reader: SettingsReader): BridgeSettings | undefined {
  const keyed = readKeyedApi(reader, { name: 'BRIDGE', baseUrl: 'https://api.bridge.xyz/v0' })
  const webhookPublicKey = readPublicKey(reader)
  if (keyed !== undefined) return { ...keyed, webhookPublicKey }
  if (webhookPublicKey !== undefined)
    reader.faults.push(withoutKey('BRIDGE_WEBHOOK_PUBLIC_KEY', { keyName: 'BRIDGE_API_KEY' }))
  return undefined
}

function failed(message: string): Error {
  return fail('partner-unavailable', {}, new Error(message))
}

function accountsOf(customerId: string): string {
  return `/customers/${encodeURIComponent(customerId)}/external_accounts`
}

async function post<T>(
  api: PartnerApi,
  { path, key, body }: { readonly path: string; readonly key: string; readonly body: unknown },
  schema: z.ZodType<T>,
): Promise<Agreed<T>> {
  const request: PartnerRequest = { method: 'POST', path, headers: { 'idempotency-key': key }, body }
  const response = await requestPartner(api, request, schema)
  if (response.ok) return response
  return { ok: false, refusal: refusalOf(response.declined.status, response.declined.json) }
}

const taken = 'USDC'
const takenOn = networks.filter(({ partners }) => partners.includes(name)).map((network) => network.name)

function whyNotTaken({ network, token }: Pick<NewPayout, 'network' | 'token'>): NotTaken | undefined {
  const takes = `which takes ${taken} on ${takenOn.join(', ')}`
  if (!takenOn.includes(network)) return { member: 'chain', message: `is not a chain of the payout partner, ${takes}` }
  return token.symbol === taken
    ? undefined
    : { member: 'token', message: `is not a token of the payout partner, ${takes}` }
}

/** Refuses what Bridge would refuse, without sending the recipient's data. */
function refusalBeforeRequest(request: NewPayout): PayoutRefusal | undefined {
  const { currency, reference } = request
  const notTaken = whyNotTaken(request)
  if (notTaken !== undefined) return { code: `${notTaken.member}-not-supported`, message: notTaken.message }
  if (reference === undefined || whyNotReference(currency, reference) === undefined) return undefined
  return { code: 'reference-not-possible', message: `The reference does not fit a payment in ${currency}.` }
}

function transferBody(request: NewPayout): Readonly<Record<string, unknown>> {
  const { rail, reference } = bankRails[request.currency]
  return {
    on_behalf_of: request.customerId,
    client_reference_id: request.key,
    amount: formatAmount(request.rawAmount, request.token.decimals),
    source: {
      payment_rail: request.network,
      currency: request.token.symbol.toLowerCase(),
      from_address: request.fromAddress,
    },
    destination: {
      payment_rail: rail,
      currency: request.currency.toLowerCase(),
      external_account_id: request.accountId,
      ...(request.reference === undefined ? {} : { [reference]: request.reference }),
    },
  }
}

/** The deposit is left out if it is not the requested one. */
function payoutOf(log: Log, transfer: Transfer, requested: RequestedPayout): Payout {
  const { isUnknown, wantsOperator, ...state } = stateOfBridge(transfer.state)
  const about = { partner: name, payoutId: transfer.id, partnerState: transfer.state }
  if (isUnknown) log.warn(about, 'the partner returned an undocumented state; the payout stays pending')
  if (wantsOperator) log.warn(about, 'a payout waits for the operator at the partner')
  const deposit = depositOf(transfer, requested)
  const receipt = receiptOf(transfer)
  return {
    payoutId: transfer.id,
    partnerState: transfer.state,
    ...state,
    ...(deposit === undefined ? {} : { deposit }),
    ...(receipt === undefined ? {} : { receipt }),
  }
}

/** The facts of the receipt in a readable form. */
function receiptOf({ receipt }: Transfer): PayoutReceipt | undefined {
  const initialAmount = readable(receipt?.initial_amount)
  if (receipt == null || initialAmount === undefined) return undefined
  const feeAmount = sumOf([receipt.developer_fee, receipt.exchange_fee, receipt.gas_fee])
  const finalAmount = readable(receipt.final_amount)
  const exchangeRate = readable(receipt.exchange_rate)
  return {
    initialAmount: trimZeros(initialAmount),
    ...(feeAmount === undefined ? {} : { feeAmount }),
    ...(finalAmount === undefined ? {} : { finalAmount: trimZeros(finalAmount) }),
    ...(exchangeRate === undefined ? {} : { exchangeRate }),
  }
}

function readable(amount: string | undefined): string | undefined {
  return amount === 'unreadable' ? undefined : amount
}

/** Adds amounts exactly; undefined if one of them cannot be read. */
function sumOf(amounts: readonly (string | undefined)[]): string | undefined {
  const raw = amounts.map((amount) => parseAmount(trimZeros(amount ?? '0'), feeDecimals))
  let sum = 0n
  for (const one of raw) {
    if (typeof one !== 'bigint') return undefined
    sum += one
  }
  return formatAmount(sum, feeDecimals)
}

function isRefusal(body: Readonly<Record<string, unknown>> | PayoutRefusal): body is PayoutRefusal {
  return 'code' in body && 'message' in body
}

interface BridgeState {
  readonly state: PayoutState
  readonly awaitsDeposit: boolean
  readonly failure?: PayoutFailure
  /** Set for an undocumented state. The payout stays pending, and an operator should check it. */
  readonly isUnknown?: true
  /** Set when the operator must act at the partner. */
  readonly wantsOperator?: true
}

const waiting: BridgeState = { state: 'pending_conversion', awaitsDeposit: true }
const converting: BridgeState = { state: 'pending_conversion', awaitsDeposit: false }
const failedState = (reason: string, refund: PayoutFailure['refund']): BridgeState => {
  return { state: 'failed', awaitsDeposit: false, failure: { reason, refund } }
}

/** Maps every state of a Bridge transfer (apidocs.bridge.xyz, "Transfer states") to the service's states. */
const states = new Map<string, BridgeState>([
  ['awaiting_funds', waiting],
  ['in_review', converting],
  ['funds_received', converting],
  ['payment_submitted', { state: 'conversion_complete', awaitsDeposit: false }],
  ['payment_processed', { state: 'completed', awaitsDeposit: false }],
  ['undeliverable', failedState('The bank account could not be paid.', 'expected')],
  ['returned', failedState('The bank sent the money back.', 'expected')],
  [
    'missing_return_policy',
    {
      ...failedState('The bank account could not be paid, and no refund destination is set.', 'held'),
      wantsOperator: true,
    },
  ],
  ['refunded', failedState('The money was sent back.', 'done')],
  ['canceled', failedState('The payout was canceled.', 'none')],
  ['error', { ...failedState('The partner could not carry out the payout.', 'held'), wantsOperator: true }],
])

export const bridgeStates: readonly string[] = [...states.keys()]

/** An unknown state counts as pending: treating it as failed could pay twice, and treating it as done could lose the money. */
function stateOfBridge(word: string): BridgeState {
  return states.get(word) ?? { ...converting, isUnknown: true }
}
