import { createRequire } from 'node:module'
import path from 'node:path'
import type { Address, Network, TokenInfo } from '@purser/protocol'
import { keccak256 } from 'viem'
import permit2 from './artifacts/Permit2.json' with { type: 'json' }
import sandboxBridge from './artifacts/SandboxBridge.json' with { type: 'json' }
import sandboxPool from './artifacts/SandboxPool.json' with { type: 'json' }
import exactPermit2Proxy from './artifacts/TestExactPermit2Proxy.json' with { type: 'json' }
import uptoPermit2Proxy from './artifacts/TestUptoPermit2Proxy.json' with { type: 'json' }
import testUsdc from './artifacts/TestUsdc.json' with { type: 'json' }
import walletFactory from './artifacts/TestWalletFactory.json' with { type: 'json' }
import { rpc, rpcHex } from './rpc.ts'

/** The address of Multicall3 on every chain. */
export const multicall3Address = '0xcA11bde05977b3631167028862bE2a173976CA11'
/** The address of the factory of contract accounts (EIP-1271, EIP-6492) for tests, on every local chain. */
export const walletFactoryAddress = '0xFac7000000000000000000000000000000000001'
/** The address of the sandbox's swap pool on every local chain. */
export const sandboxPoolAddress = '0x5A4Db0C500000000000000000000000000000001'
/** The address of the sandbox's bridge contract on every local chain. */
export const sandboxBridgeAddress = '0x5a4DB0C500000000000000000000000000000002'
/** The address of Permit2 on every chain. */
export const permit2Address = '0x000000000022D473030F116dDEE9F6B43aC78BA3'
/** The address of x402's proxy for the scheme `exact` over Permit2 (@x402/evm 2.27.0, x402ExactPermit2ProxyAddress). */
export const exactPermit2ProxyAddress = '0x402085c248EeA27D92E8b30b2C58ed07f9E20001'
/** The address of x402's proxy for the scheme `upto` (@x402/evm 2.27.0, x402UptoPermit2ProxyAddress). */
export const uptoPermit2ProxyAddress = '0x4020A4f3b7b90ccA423B9fabCc0CE57C6C240002'

/**
 * The storage slots of a TIP-20 token in anvil 1.7.1 (hardfork T4), read from a token that its factory made. anvil makes
 * only pathUSD and the testnet's three tokens by itself, and the factory cannot make a token at a chosen address.
 */
const tip20Slots = {
  name: 2,
  symbol: 3,
  currency: 4,
  quoteToken: 6,
  policy: 7,
  totalSupply: 8,
  balances: 9,
  supplyCap: 13,
}
const pathUsdWord = 0x20c0000000000000000000000000000000000000n
const openPolicyWord = (1n << 160n) | pathUsdWord
const tip20Supply = 10n ** 18n

/**
 * Installs the registry's contracts and tokens on a fresh or restored chain, without making a block. The treasury gets
 * the whole supply of the Tempo tokens that anvil does not provide.
 */
export async function installContracts(rpcUrl: string, network: Network, treasury: Address): Promise<void> {
  await setCode(rpcUrl, walletFactoryAddress, walletFactory.deployedBytecode)
  await setCode(rpcUrl, sandboxPoolAddress, sandboxPool.deployedBytecode)
  await setCode(rpcUrl, sandboxBridgeAddress, sandboxBridge.deployedBytecode)
  if (!(await hasCode(rpcUrl, multicall3Address))) await installMulticall3(rpcUrl)
  for (const token of network.tokens) await installToken(rpcUrl, token, treasury)
  if (network.nativeCoin !== null) await installPermit2(rpcUrl)
}

/** Permit2 itself and x402's two proxies. Tempo has its own Permit2, and x402 settles nothing there. */
async function installPermit2(rpcUrl: string): Promise<void> {
  await setCode(rpcUrl, permit2Address, permit2.deployedBytecode)
  await setCode(rpcUrl, exactPermit2ProxyAddress, exactPermit2Proxy.deployedBytecode)
  await setCode(rpcUrl, uptoPermit2ProxyAddress, uptoPermit2Proxy.deployedBytecode)
}

async function installToken(rpcUrl: string, token: TokenInfo, treasury: Address): Promise<void> {
  if (token.address.toLowerCase().startsWith('0x20c0')) return installTip20(rpcUrl, token, treasury)
  await setCode(rpcUrl, token.address, testUsdc.deployedBytecode)
  const { slots } = testUsdc
  await setSlot(rpcUrl, token.address, slots.name, shortText(token.eip712?.name ?? token.name))
  await setSlot(rpcUrl, token.address, slots.symbol, shortText(token.symbol))
  await setSlot(rpcUrl, token.address, slots.version, shortText(token.eip712?.version ?? '1'))
  await setSlot(rpcUrl, token.address, slots.decimals, word(BigInt(token.decimals)))
}

/** Tempo's token code runs at every address with its prefix that has code; the rest is storage. */
async function installTip20(rpcUrl: string, token: TokenInfo, treasury: Address): Promise<void> {
  if (await hasCode(rpcUrl, token.address)) return
  const set = (slot: number | bigint, value: string) => setSlot(rpcUrl, token.address, slot, value)
  await set(tip20Slots.name, shortText(token.name))
  await set(tip20Slots.symbol, shortText(token.symbol))
  await set(tip20Slots.currency, shortText('USD'))
  await set(tip20Slots.quoteToken, word(pathUsdWord))
  await set(tip20Slots.policy, word(openPolicyWord))
  await set(tip20Slots.supplyCap, word(2n ** 128n - 1n))
  await set(tip20Slots.totalSupply, word(tip20Supply))
  const key = `0x${word(BigInt(treasury)).slice(2)}${word(BigInt(tip20Slots.balances)).slice(2)}` as const
  await set(BigInt(keccak256(key)), word(tip20Supply))
  // Last: a restart takes the code as the sign that the token is complete.
  await setCode(rpcUrl, token.address, '0xef')
}

/** viem includes Multicall3's creation code. Running it in a call returns the code to set. */
async function installMulticall3(rpcUrl: string): Promise<void> {
  const require = createRequire(import.meta.url)
  const { multicall3Bytecode } = require(path.join(path.dirname(require.resolve('viem')), 'constants', 'contracts.js'))
  const call = { data: String(multicall3Bytecode) }
  await setCode(rpcUrl, multicall3Address, await rpcHex(rpcUrl, 'eth_call', [call, 'latest']))
}

async function hasCode(rpcUrl: string, address: string): Promise<boolean> {
  return (await rpcHex(rpcUrl, 'eth_getCode', [address, 'latest'])) !== '0x'
}

async function setCode(rpcUrl: string, address: string, code: string): Promise<void> {
  await rpc(rpcUrl, 'anvil_setCode', [address, code])
}

async function setSlot(rpcUrl: string, address: string, slot: number | bigint, value: string): Promise<void> {
  await rpc(rpcUrl, 'anvil_setStorageAt', [address, word(BigInt(slot)), value])
}

function word(value: bigint): string {
  return `0x${value.toString(16).padStart(64, '0')}`
}

/** Solidity's layout of a string below 32 bytes: the bytes from the left, twice the length in the last one. */
function shortText(text: string): string {
  const bytes = Buffer.from(text, 'utf8')
  if (bytes.length > 31) throw new Error(`"${text}" is too long for one slot`)
  const slot = Buffer.alloc(32)
  bytes.copy(slot)
  slot[31] = bytes.length * 2
  return `0x${slot.toString('hex')}`
}
