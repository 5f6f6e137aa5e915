import {
  type Address,
  chains,
  formatAmount,
  networkByName,
  resolveNetwork,
  sameAddress,
  x402Headers,
} from '@purser/protocol'
import { must, mustOptions } from '../check.ts'
import type { NewWalletPayment, WalletPayment } from '../wallets.ts'
import { textOf, unread } from './challenge.ts'
import { choose } from './choose.ts'
import { ApprovalNeededError, UnsupportedPaymentError } from './errors.ts'
import type { PayingFetchOptions, PayLimits } from './options.ts'
import { type Payer, payerOf } from './payer.ts'
import { type Protocol, proposalOf, type Quote } from './payment.ts'
import type { Reading } from './quotes.ts'
import type { Reservation } from './reserve.ts'

/** A managed wallet that pays. The service holds its key and applies its policy. */
export interface PayingWallet {
  /** `mwt_…` or `cad_…`. */
  readonly id: string
  /** `purser.wallets` of a client with the scope `money`. */
  readonly wallets: {
    readonly pay: (body: NewWalletPayment, options?: { readonly idempotencyKey?: string }) => Promise<WalletPayment>
  }
  /** A payment that was approved (`ApprovalNeededError.paymentId`): the next 402 is paid as that payment. */
  readonly approvedPaymentId?: string | undefined
}

/** The options of a fetch that pays from a managed wallet. Caps over time are the wallet's policy. */
export interface WalletFetchOptions
  extends Pick<PayingFetchOptions, 'onPayment' | 'onFault' | 'sessions' | 'allowInsecure' | 'fetch' | 'now'> {
  readonly wallet: PayingWallet
  readonly limits: Pick<PayLimits, 'perCall' | 'hosts' | 'networks'>
  /** The protocol to prefer. */
  readonly prefer?: Protocol | undefined
}

const noSigner = {
  address: '0x0000000000000000000000000000000000000000' as Address,
  signTypedData: () => Promise.reject(new Error('the service signs')),
}

/** Converts the options into a payer without a key. */
export function walletPayer(given: WalletFetchOptions): Payer {
  checkWallet(given)
  const { wallet: _, prefer, ...options } = given
  return payerOf({ ...options, signer: noSigner, prefer: prefer === undefined ? [] : [prefer] })
}

/** The offer that the wallet signed, and the header to send. */
export interface WalletCredential {
  readonly reservation: Reservation
  readonly credential: { readonly header: string; readonly value: string; readonly validBeforeSeconds: number }
}

/**
 * Lets the wallet pay a 402. Throws what a payer with a key throws before signing, `ApprovalNeededError` if a person must
 * approve, and the service's `PurserError` if it refuses.
 */
export async function payFromWallet(
  payer: Payer,
  options: WalletFetchOptions,
  asking: {
    readonly url: URL
    readonly response: Response
    readonly readings: readonly Reading[]
    readonly purchase: string | undefined
  },
): Promise<WalletCredential> {
  const { wallet, limits, prefer } = options
  const { url, response, readings, purchase } = asking
  const [cheapest] = choose(payer, readings)
  const { approvedPaymentId } = wallet
  const body = {
    fromWalletId: wallet.id,
    challenge: await challengeOf(response, readings),
    maxAmount: limits.perCall,
    ...(limits.networks === undefined ? {} : { chains: chainsOf(limits.networks) }),
    ...(prefer === undefined ? {} : { prefer }),
    ...(approvedPaymentId === undefined ? {} : { approvedPaymentId }),
  }
  const payment = await wallet.wallets.pay(body, purchase === undefined ? {} : { idempotencyKey: purchase })
  const { id, credential } = payment
  if (credential === null) throw new ApprovalNeededError(proposalOf(url, cheapest), id)
  const quote = readings.flatMap((one) => ('quote' in one && isPaidBy(one.quote, payment) ? [one.quote] : []))[0]
  if (quote === undefined) throw new UnsupportedPaymentError([{ offer: payment.method, reason: 'malformed' }])
  const { header, value, validBefore } = credential
  const validBeforeSeconds = Math.floor(Date.parse(validBefore) / 1_000)
  return {
    reservation: { id, quote, payment: proposalOf(url, quote) },
    credential: { header, value, validBeforeSeconds },
  }
}

/**
 * Returns the parts of a 402 that contain its price. Without the MPP challenges, if the caller already uses the header
 * that they require.
 */
async function challengeOf(response: Response, readings: readonly Reading[]): Promise<NewWalletPayment['challenge']> {
  const isTaken = readings.some((one) => 'refusal' in one && one.refusal.reason === 'header-taken')
  const names = [x402Headers.paymentRequired, ...(isTaken ? [] : ['WWW-Authenticate'])]
  const fields = names.map((name) => [name, response.headers.get(name)] as const)
  const headers = Object.fromEntries(
    fields.flatMap(([name, value]) => (value === null ? [] : [[name, value] as const])),
  )
  const body = await textOf(response)
  return { status: 402, headers, ...(body === unread ? {} : { body }) }
}

function chainsOf(names: NonNullable<PayLimits['networks']>): NonNullable<NewWalletPayment['chains']> {
  const allowed = names.map(networkByName)
  return chains.filter((chain) =>
    (['test', 'live'] as const).some((environment) => allowed.includes(resolveNetwork(chain, environment))),
  )
}

function isPaidBy({ method, network, token, rawAmount, payTo }: Quote, payment: WalletPayment): boolean {
  const isSamePrice = formatAmount(rawAmount, token.decimals) === payment.amount && token.symbol === payment.fromToken
  const isSameChain = (['test', 'live'] as const).some((at) => resolveNetwork(payment.fromChain, at) === network)
  return method === payment.method && isSamePrice && isSameChain && sameAddress(payTo, payment.toAddress)
}

/** Throws a `TypeError` for a wallet that cannot pay. */
function checkWallet(given: WalletFetchOptions): void {
  const { wallet, prefer } = given
  mustOptions(wallet, 'wallet')
  checkNotForWallets(given)
  const { id, wallets, approvedPaymentId } = wallet
  const isId = typeof id === 'string' && /^(?:mwt|cad)_[0-9a-z]+$/.test(id)
  must(isId, 'wallet.id', id, 'Give the id of a managed wallet (mwt_…) or of a child address (cad_…).')
  must(typeof wallets?.pay === 'function', 'wallet.wallets', wallets, 'Give purser.wallets of a client.')
  const isPayment = approvedPaymentId === undefined || /^wtx_[0-9a-z]+$/.test(approvedPaymentId)
  must(isPayment, 'wallet.approvedPaymentId', approvedPaymentId, 'Give paymentId of an ApprovalNeededError.')
  const isProtocol = prefer === undefined || prefer === 'x402' || prefer === 'mpp'
  must(isProtocol, 'prefer', prefer, 'Give "x402" or "mpp".')
}

/** Throws for options that only apply to a payer with a key: a limit that has no effect would be worse than none. */
function checkNotForWallets(given: WalletFetchOptions): void {
  const options: object = given
  const limits: object = given.limits ?? {}
  for (const [name, value] of Object.entries(limits))
    must(
      !signerLimits.includes(name) || value === undefined,
      `limits.${name}`,
      value,
      "With a managed wallet, caps over time and approvals are the wallet's policy; leave it out.",
    )
  for (const [name, value] of Object.entries(options))
    if (signerOptions.includes(name) && value !== undefined)
      throw new TypeError(
        `${name} is given together with wallet. The service signs, and the wallet's policy counts; leave one of them out.`,
      )
}

const signerLimits = ['perHostPerDay', 'perDay', 'confirmAbove', 'confirm']
const signerOptions = ['signer', 'ledger', 'tokens', 'random']
