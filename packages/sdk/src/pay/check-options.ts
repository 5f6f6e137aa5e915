import { networks } from '@purser/protocol'
import { must, mustBooleans, mustFunctions, mustKnow, mustList, mustNames, mustOptions, type Named } from '../check.ts'
import type { PayingFetchOptions } from './options.ts'

const payingOptions: Named<PayingFetchOptions> = {
  signer: true,
  limits: true,
  prefer: true,
  ledger: true,
  tokens: true,
  onPayment: true,
  onFault: true,
  sessions: true,
  allowInsecure: true,
  fetch: true,
  now: true,
  random: true,
}

/** Throws a `TypeError` for options of the wrong type, as untyped callers may pass. */
export function checkPayingOptions(options: PayingFetchOptions): void {
  mustKnow(options, payingOptions)
  const { signer, limits, prefer, ledger, tokens, sessions, allowInsecure } = options
  const remedy = 'Give a signer such as privateKeyToAccount(key) of viem, or a managed wallet as "wallet".'
  mustNotBeText(signer, remedy)
  must(typeof signer === 'object' && signer !== null, 'signer', signer, remedy)
  must(typeof signer.signTypedData === 'function', 'signer.signTypedData', signer.signTypedData, remedy)
  const { sendTransaction, signTempoTransaction } = signer
  mustFunctions({ 'signer.sendTransaction': sendTransaction, 'signer.signTempoTransaction': signTempoTransaction })
  const shape = 'Give limits such as { perCall: "0.05", perDay: "5" }.'
  must(typeof limits === 'object' && limits !== null && !Array.isArray(limits), 'limits', limits, shape)
  mustNames('limits', limits, limitNames, 'limit')
  mustFunctions({ 'limits.confirm': limits.confirm })
  mustList('limits.hosts', limits.hosts, 'List hosts, such as ["api.example.com"].')
  mustList('limits.networks', limits.networks, 'List networks, such as ["base"].')
  mustList('prefer', prefer, 'List protocols and networks, such as ["mpp/tempo", "x402"].')
  for (const preference of prefer ?? []) checkPreference(preference)
  must(tokens === undefined || Array.isArray(tokens), 'tokens', tokens, 'List tokens.')
  mustLedger(ledger)
  mustBooleans({ sessions, allowInsecure })
  const { onPayment, onFault, fetch, now, random } = options
  mustFunctions({ onPayment, onFault, fetch, now, random })
}

/** A limit under another name would not be applied. */
const limitNames = ['perCall', 'perHostPerDay', 'perDay', 'confirmAbove', 'confirm', 'hosts', 'networks']

/** A private key or a mnemonic is a common mistake here, so the message shows no part of it. */
function mustNotBeText(signer: unknown, remedy: string): void {
  if (typeof signer === 'string') throw new TypeError(`signer is text (not shown: it may be a private key). ${remedy}`)
}

function mustLedger(ledger: PayingFetchOptions['ledger']): void {
  if (ledger === undefined) return
  mustOptions(ledger, 'ledger')
  const methods = ledgerMethods.map((name) => [`ledger.${name}`, ledger[name]] as const)
  for (const [name, method] of methods) must(typeof method === 'function', name, method, 'Give a function.')
}

const ledgerMethods = ['reserve', 'signed', 'spent', 'release', 'find', 'unfinished'] as const

function checkPreference(preference: string): void {
  const [protocol, network, ...rest] = preference.includes('/') ? preference.split('/') : [preference, preference]
  const isProtocol = protocol === 'x402' || protocol === 'mpp'
  const isNetwork = networks.some(({ name }) => name === network)
  const isGood = rest.length === 0 && (preference.includes('/') ? isProtocol && isNetwork : isProtocol || isNetwork)
  must(isGood, 'prefer', preference, 'Use a protocol, a network or both, such as "x402", "base" or "mpp/tempo".')
}
