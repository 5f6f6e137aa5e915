import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { networkByName } from '@purser/protocol'
import { generatePrivateKey, privateKeyToAddress } from 'viem/accounts'
import { afterEach, expect, test } from 'vitest'
import {
  type ChainOptions,
  type DevChain,
  fundFees,
  fundNative,
  fundToken,
  InUseError,
  startChain,
  tokenBalance,
} from '../src/index.ts'
import { rpc, rpcHex } from '../src/rpc.ts'

const cleanUps: (() => Promise<void> | void)[] = []
const payer = privateKeyToAddress(generatePrivateKey())

afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp()
})

test.each(['base-sepolia', 'eth-sepolia', 'tempo', 'tempo-moderato'] as const)(
  '%s has the chain id and every token of the registry, and the faucet pays out each token',
  async (network) => {
    const chain = await start({ network })
    const described = networkByName(network)
    expect(Number(await rpcHex(chain.rpcUrl, 'eth_chainId'))).toBe(described?.chainId)
    expect(Object.keys(chain.tokens)).toEqual(described?.tokens.map(({ symbol }) => symbol))
    await Promise.all(Object.keys(chain.tokens).map((symbol) => fundToken(chain, symbol, payer, 2_500_000n)))
    for (const symbol of Object.keys(chain.tokens)) expect(await tokenBalance(chain, symbol, payer)).toBe(2_500_000n)
  },
)

test('an account gets its fee balance, in the coin or in pathUSD, and a sufficient balance is left alone', async () => {
  const base = await start({ network: 'base-sepolia' })
  const coin = async () => BigInt(await rpcHex(base.rpcUrl, 'eth_getBalance', [payer, 'latest']))
  await fundFees(base, payer)
  expect(await coin()).toBe(10n ** 20n)
  await fundNative(base, payer, 10n ** 20n - 1n)
  await fundFees(base, payer)
  expect(await coin()).toBe(10n ** 20n - 1n)

  const tempo = await start({ network: 'tempo-moderato' })
  await fundToken(tempo, 'pathUSD', payer, 1n)
  await fundFees(tempo, payer)
  await fundFees(tempo, payer)
  expect(await tokenBalance(tempo, 'pathUSD', payer)).toBe(1_000_000_001n)
})

test.each(['base-sepolia', 'tempo', 'tempo-moderato'] as const)(
  '%s continues from the state in which it was stopped',
  async (network) => {
    const stateFile = temporaryFile()
    const first = await start({ network, stateFile })
    const symbol = Object.keys(first.tokens)[0] ?? ''
    const hash = await fundToken(first, symbol, payer, 7n)
    const head = Number(await rpcHex(first.rpcUrl, 'eth_blockNumber'))
    await first.stop()

    const second = await start({ network, stateFile })
    expect(await tokenBalance(second, symbol, payer)).toBe(7n)
    expect(await rpc(second.rpcUrl, 'eth_getTransactionReceipt', [hash])).toMatchObject({ status: '0x1' })
    expect(Number(await rpcHex(second.rpcUrl, 'eth_blockNumber'))).toBeGreaterThanOrEqual(head)
    await fundToken(second, symbol, payer, 7n)
    expect(await tokenBalance(second, symbol, payer)).toBe(14n)
  },
)

test('kill -9 of the launcher loses no mined block, and leaves no second chain running', async () => {
  const stateFile = temporaryFile()
  const { launcher, orphan } = await startInAnotherProcess(stateFile)
  await fundToken(orphan, 'USDC', payer, 9n)
  await killed(launcher)
  await fundNative(orphan, payer, 5n)

  const next = await start({ network: 'base-sepolia', stateFile })
  expect(await tokenBalance(next, 'USDC', payer)).toBe(9n)
  expect(Number(await rpcHex(next.rpcUrl, 'eth_getBalance', [payer, 'latest']))).toBe(5)
  await expect(rpc(orphan.rpcUrl, 'eth_chainId')).rejects.toThrow()
})

test('a chain that is killed itself restarts with the transactions of a second before', async () => {
  const stateFile = temporaryFile()
  const first = await start({ network: 'base-sepolia', stateFile })
  const hash = await fundToken(first, 'USDC', payer, 3n)
  const saved = () => existsSync(stateFile) && readFileSync(stateFile, 'utf8').includes(hash)
  await expect.poll(saved).toBe(true)
  await first.kill()

  const second = await start({ network: 'base-sepolia', stateFile })
  expect(await tokenBalance(second, 'USDC', payer)).toBe(3n)
})

test('two launchers cannot run on one state file, and a taken port is refused', async () => {
  const stateFile = temporaryFile()
  const chain = await start({ network: 'base-sepolia', stateFile })
  await expect(startChain({ network: 'base-sepolia', stateFile })).rejects.toThrow(InUseError)
  const port = Number(new URL(chain.rpcUrl).port)
  await expect(startChain({ network: 'base-sepolia', port })).rejects.toThrow('anvil ended')
})

test('a chain with a block time makes blocks by the clock, with or without transactions', async () => {
  const chain = await start({ network: 'base-sepolia', blockTimeSeconds: 1 })
  await expect.poll(async () => Number(await rpcHex(chain.rpcUrl, 'eth_blockNumber'))).toBeGreaterThanOrEqual(2)
  await fundToken(chain, 'USDC', payer, 1n)
  expect(await tokenBalance(chain, 'USDC', payer)).toBe(1n)
})

async function start(options: ChainOptions): Promise<DevChain> {
  const chain = await startChain(options)
  cleanUps.push(() => chain.stop().catch(() => {}))
  return chain
}

function temporaryFile(): string {
  const dir = mkdtempSync(path.join(os.tmpdir(), 'purser-test-'))
  cleanUps.unshift(() => rmSync(dir, { recursive: true, force: true }))
  return path.join(dir, 'state.json')
}

async function startInAnotherProcess(stateFile: string): Promise<{ launcher: ChildProcess; orphan: DevChain }> {
  const script = path.join(import.meta.dirname, 'run-chain.ts')
  const launcher = spawn(process.execPath, [script, stateFile], { stdio: ['ignore', 'pipe', 'inherit'] })
  cleanUps.push(() => {
    launcher.kill('SIGKILL')
  })
  const line = await new Promise<string>((resolve) => launcher.stdout.once('data', (chunk) => resolve(String(chunk))))
  return { launcher, orphan: JSON.parse(line) }
}

async function killed(launcher: ChildProcess): Promise<void> {
  const exited = new Promise((resolve) => launcher.once('exit', resolve))
  launcher.kill('SIGKILL')
  await exited
}
