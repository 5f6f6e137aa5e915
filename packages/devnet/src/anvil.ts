import { type ChildProcess, spawn } from 'node:child_process'
import { createRequire } from 'node:module'
import path from 'node:path'
import { rpc } from './rpc.ts'

export type AnvilOptions = {
  /** Has no effect on anvil. A later start finds this process in the process list by it. */
  mark?: string

  chainId: number
  isTempo: boolean
  takesL1Fee?: boolean
  /** Blocks by which the safe block is behind the newest. The final block is twice as far behind. Default 1. */
  epochBlocks?: number
  port?: number
  blockTimeSeconds?: number
  loadState?: string
}

const startMsMax = 20_000
const statesKept = 256

/**
 * Runs one native anvil on 127.0.0.1 and resolves when it listens. If a given port is taken, this rejects. Without a
 * port, anvil finds a free one.
 */
export async function startAnvil(options: AnvilOptions): Promise<{ child: ChildProcess; rpcUrl: string }> {
  const child = spawnAnvil(options)
  try {
    const rpcUrl = `http://${await listening(child)}`
    // Its own --quiet would hide the address; without it, anvil writes a line for every request.
    await rpc(rpcUrl, 'anvil_setLoggingEnabled', [false])
    return { child, rpcUrl }
  } catch (error) {
    child.kill('SIGKILL')
    throw error
  }
}

function spawnAnvil(options: AnvilOptions): ChildProcess {
  const args = ['--port', String(options.port ?? 0), '--chain-id', String(options.chainId)]
  args.push('--prune-history', String(statesKept), '--no-request-size-limit')
  args.push('--slots-in-an-epoch', String(options.epochBlocks ?? 1))
  if (options.isTempo) args.push('--network', 'tempo', '--hardfork', 'T4', '--mixed-mining')
  // anvil's own 30 million is half of what Ethereum's and a fifth of what Base's blocks hold.
  else args.push('--gas-limit', '60000000')
  if (options.takesL1Fee === true) args.push('--network', 'optimism')
  if (options.blockTimeSeconds !== undefined) args.push('--block-time', String(options.blockTimeSeconds))
  if (options.loadState !== undefined) args.push('--load-state', options.loadState)
  if (options.mark !== undefined) args.push('--cache-path', options.mark)
  // detached: a Ctrl-C in the terminal reaches only this process, and the chain is stopped last.
  return spawn(findAnvil(), args, { stdio: ['ignore', 'pipe', 'pipe'], detached: true })
}

function listening(child: ChildProcess): Promise<string> {
  let output = ''
  return new Promise((resolve, reject) => {
    const late = () => reject(new Error(`anvil is not ready after ${startMsMax} ms`))
    const timer = setTimeout(late, startMsMax).unref()
    const onOutput = (chunk: unknown) => {
      output = `${output}${chunk}`.slice(-4_000)
      const address = /Listening on (\S+:\d+)/.exec(output)?.[1]
      if (address === undefined) return
      clearTimeout(timer)
      resolve(address)
    }
    child.stdout?.on('data', onOutput)
    child.stderr?.on('data', onOutput)
    child.once('error', reject)
    child.once('close', (code) => reject(new Error(`anvil ended (${code}): ${output.trim().slice(-400)}`)))
  })
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
