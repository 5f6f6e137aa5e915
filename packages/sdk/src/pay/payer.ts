import {
  type Address,
  bytesToHex,
  type Hex,
  type Network,
  networkByName,
  networks,
  parseAddress,
  parseUsd,
  type TokenInfo,
  tokenByAddress,
  usdDecimals,
} from '@purser/protocol'
import { must } from '../check.ts'
import { checkPayingOptions } from './check-options.ts'
import type { Ledger } from './ledger.ts'
import { memoryLedger } from './memory-ledger.ts'
import type { AddedToken, PayingFetchOptions, PayLimits, Preference } from './options.ts'
import type { PaymentRecord, ProposedPayment } from './payment.ts'
import { memoryJar, type SessionJar } from './session-jar.ts'
import type { Signer } from './signer.ts'

/** The parsed limits. Dollars are in units of 10^-18. */
interface ReadLimits {
  readonly perCall: bigint
  readonly counted: { readonly perHostPerDay: string | undefined; readonly perDay: string | undefined }
  readonly confirm: { readonly above: bigint; readonly ask: (payment: ProposedPayment) => unknown } | undefined
  readonly hosts: ReadonlySet<string> | undefined
  readonly networks: ReadonlySet<string> | undefined
}

/** The parsed options of a paying fetch, with defaults. */
export interface Payer {
  readonly signer: Signer
  /** Checksummed. */
  readonly address: Address
  readonly limits: ReadLimits
  readonly prefer: readonly Preference[]
  readonly ledger: Pick<Ledger, 'reserve' | 'signed' | 'find'>
  /** As in the ledger, but failures go to `fault`: the payment has already happened. */
  readonly spent: (reservationId: string) => Promise<void>
  readonly release: (reservationId: string) => Promise<void>
  readonly allowInsecure: boolean
  readonly fetch: typeof globalThis.fetch
  readonly now: () => number
  readonly randomHex: (bytes: number) => Hex
  readonly tokenAt: (network: Network, address: string) => TokenInfo | undefined
  readonly report: (payment: PaymentRecord) => void
  /** Undefined if sessions are off. */
  readonly sessions: SessionJar | undefined
}

/** Parses the options. Throws a `TypeError` for an invalid one, before the first payment. */
export function payerOf(options: PayingFetchOptions): Payer {
  checkPayingOptions(options)
  const address = parseAddress(options.signer.address)
  must(address !== undefined, 'signer.address', options.signer.address, 'Give an address: 0x and 40 hex digits.')
  const random = options.random ?? ((bytes: number) => crypto.getRandomValues(new Uint8Array(bytes)))
  const ledger = options.ledger ?? memoryLedger()
  const fault = (error: unknown) => quietly(() => options.onFault?.(error))
  return {
    signer: options.signer,
    address,
    limits: readLimits(options.limits),
    prefer: options.prefer ?? [],
    ledger,
    spent: (id) => kept(() => ledger.spent(id), fault),
    release: (id) => kept(() => ledger.release(id), fault),
    allowInsecure: options.allowInsecure ?? false,
    fetch: options.fetch ?? ((input, init) => globalThis.fetch(input, init)),
    now: options.now ?? Date.now,
    randomHex: (bytes) => hexOfExactly(bytes, random(bytes)),
    tokenAt: tokensOf(options.tokens ?? []),
    report: (payment) => quietly(() => options.onPayment?.(payment), fault),
    sessions: options.sessions === false ? undefined : memoryJar(options.now ?? Date.now),
  }
}

/** A nonce that is too short could be guessed, or every seller would refuse it. */
function hexOfExactly(bytes: number, drawn: Uint8Array): Hex {
  if (drawn.length !== bytes) throw new RangeError(`random returned ${drawn.length} bytes; ${bytes} were requested`)
  return bytesToHex(drawn)
}

function readLimits(limits: PayLimits): ReadLimits {
  const { perHostPerDay, perDay } = limits
  readUsd('perHostPerDay', perHostPerDay)
  readUsd('perDay', perDay)
  const perCall = readUsd('perCall', limits.perCall)
  const others = {
    counted: { perHostPerDay, perDay },
    confirm: readConfirm(limits),
    hosts: limits.hosts && new Set(limits.hosts.map((host) => host.toLowerCase())),
    networks: limits.networks && new Set(limits.networks.map((name) => networkOf('limits.networks', name).name)),
  }
  must(perCall !== undefined, 'limits.perCall', perCall, 'Give the most for one call, such as "0.05".')
  return { perCall, ...others }
}

function readUsd(name: string, text: string | undefined): bigint | undefined {
  if (text === undefined) return undefined
  const usd = typeof text === 'string' ? parseUsd(text) : undefined
  must(usd !== undefined, `limits.${name}`, text, 'Give US dollars as text, such as "0.05", without a currency sign.')
  return usd
}

function readConfirm({ confirmAbove, confirm }: PayLimits): ReadLimits['confirm'] {
  const above = readUsd('confirmAbove', confirmAbove)
  if (above === undefined && confirm === undefined) return undefined
  must(above !== undefined, 'limits.confirmAbove', undefined, 'Give it together with limits.confirm.')
  must(confirm !== undefined, 'limits.confirm', undefined, 'Give it together with limits.confirmAbove.')
  return { above, ask: confirm }
}

function tokensOf(added: readonly AddedToken[]): Payer['tokenAt'] {
  const byAddress = new Map<string, TokenInfo>()
  for (const token of added) {
    const network = networkOf('tokens: network', token.network)
    const address = parseAddress(token.address)
    must(address !== undefined, `tokens: address of ${token.symbol}`, token.address, 'Give 0x and 40 hex digits.')
    const isCountable = Number.isInteger(token.decimals) && token.decimals >= 0 && token.decimals <= usdDecimals
    must(isCountable, `tokens: decimals of ${token.symbol}`, token.decimals, `Give 0 to ${usdDecimals}.`)
    const known = tokenByAddress(network, address)
    must(
      known === undefined,
      `tokens: address of ${token.symbol}`,
      address,
      `It is known already, as ${known?.symbol}. Leave it out.`,
    )
    byAddress.set(`${network.name}/${address.toLowerCase()}`, { ...token, address })
  }
  return (network, text) => tokenByAddress(network, text) ?? byAddress.get(`${network.name}/${text.toLowerCase()}`)
}

function networkOf(option: string, name: string): Network {
  const network = networkByName(name)
  must(network !== undefined, option, name, `Use one of ${networks.map((one) => one.name).join(', ')}.`)
  return network
}

/** Runs a callback of the caller. A throw must not lose the response that was paid for. */
function quietly(run: () => void, fault: (error: unknown) => void = () => {}): void {
  try {
    run()
  } catch (error) {
    fault(error)
  }
}

async function kept(write: () => Promise<void>, fault: (error: unknown) => void): Promise<void> {
  try {
    await write()
  } catch (error) {
    fault(error)
  }
}
