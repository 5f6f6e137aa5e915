import { type ChildProcess, spawn } from 'node:child_process'
import { createRequire } from 'node:module'
import { createServer } from 'node:net'
import path from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { rpcHex } from './rpc.ts'

export type AnvilOptions = {
  chainId: number
  isTempo: boolean
  port?: number
  blockTimeSeconds?: number
  loadState?: string
}

const startMsMax = 20_000
const statesKept = 256
const portAttemptsMax = 5

/**
 * Runs one native anvil, answering on 127.0.0.1. A given port is taken or refused; otherwise a free one is found, again
 * if another process takes it in between.
 */
export async function startAnvil(options: AnvilOptions): Promise<{ child: ChildProcess; rpcUrl: string }> {
  for (let attempt = 1; ; attempt += 1) {
    const port = options.port ?? (await findFreePort())
    const started = spawnAnvil(options, port)
    try {
      await waitForChain(started.child, started.rpcUrl, options.chainId)
      return started
    } catch (error) {
      started.child.kill('SIGKILL')
      if (options.port !== undefined || attempt === portAttemptsMax) throw error
    }
  }
}

function spawnAnvil(options: AnvilOptions, port: number): { child: ChildProcess; rpcUrl: string } {
  const args = ['--port', String(port), '--chain-id', String(options.chainId), '--quiet']
  args.push('--prune-history', String(statesKept), '--no-request-size-limit')
  if (options.isTempo) args.push('--network', 'tempo', '--hardfork', 'T4', '--mixed-mining')
  if (options.blockTimeSeconds !== undefined) args.push('--block-time', String(options.blockTimeSeconds))
  if (options.loadState !== undefined) args.push('--load-state', options.loadState)
  // detached: a Ctrl-C in the terminal is for us, the chain goes last.
  const child = spawn(findAnvil(), args, { stdio: ['ignore', 'ignore', 'pipe'], detached: true })
  return { child, rpcUrl: `http://127.0.0.1:${port}` }
}

function waitForChain(child: ChildProcess, rpcUrl: string, chainId: number): Promise<void> {
  let said = ''
  child.stderr?.on('data', (chunk) => {
    said = `${said}${chunk}`.slice(-2_000)
  })
  const ended = new Promise<never>((_, reject) => {
    child.once('error', reject)
    child.once('close', (code) => reject(new Error(`anvil ended (${code}): ${said.trim()}`)))
  })
  ended.catch(() => {})
  return Promise.race([ended, pollChainId(child, rpcUrl, chainId)])
}

async function pollChainId(child: ChildProcess, rpcUrl: string, chainId: number): Promise<void> {
  const deadline = performance.now() + startMsMax
  while (child.exitCode === null && performance.now() < deadline) {
    const found = await rpcHex(rpcUrl, 'eth_chainId').catch(() => undefined)
    if (found !== undefined && child.exitCode === null && Number(found) === chainId) return
    await delay(15)
  }
  throw new Error(`No chain ${chainId} at ${rpcUrl}`)
}

function findAnvil(): string {
  const name = `@foundry-rs/anvil-${process.platform}-${process.arch === 'x64' ? 'amd64' : process.arch}`
  try {
    const wrapper = createRequire(import.meta.url).resolve('@foundry-rs/anvil/package.json')
    return path.join(path.dirname(createRequire(wrapper).resolve(`${name}/package.json`)), 'bin', 'anvil')
  } catch (cause) {
    throw new Error(`No anvil for this machine (${name} is not installed). Set CHAINS=off to run without chains.`, {
      cause,
    })
  }
}

function findFreePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer()
    server.once('error', reject)
    server.listen(0, '127.0.0.1', () => {
      const address = server.address()
      server.close(() =>
        address !== null && typeof address === 'object' ? resolve(address.port) : reject(new Error('no port')),
      )
    })
  })
}
