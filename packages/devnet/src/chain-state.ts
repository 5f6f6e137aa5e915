import { existsSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { gunzipSync } from 'node:zlib'
import { commandLine, signalProcess, waitUntil } from './processes.ts'
import { isRecord, rpcHex } from './rpc.ts'

const lookMs = 1_000
const idleSaveMs = 10_000
const emptyBlocksKept = 256
const trimBytesMax = 200_000_000
const orphanMs = 10_000

/**
 * Writes the whole state of a chain to a file atomically: a crash leaves the old file or the new one. anvil's own
 * --state writes in place, every second, with every block since the start, and so fills the disk on a chain with a block
 * time.
 */
export async function saveChainState(rpcUrl: string, file: string): Promise<void> {
  const dump = await rpcHex(rpcUrl, 'anvil_dumpState')
  const half = `${file}.${process.pid}.half`
  writeFileSync(half, trim(gunzipSync(Buffer.from(dump.slice(2), 'hex'))), { flush: true })
  renameSync(half, file)
}

/** Saves the chain within about a second of every transaction, and at intervals when nothing happens, until stopped. */
export function saveWhileRunning(rpcUrl: string, file: string): { stop(): Promise<void> } {
  let timer: NodeJS.Timeout | undefined
  let running = Promise.resolve()
  let seen = 0
  let savedAt = 0

  const look = async () => {
    const head = Number(await rpcHex(rpcUrl, 'eth_blockNumber'))
    const due = performance.now() - savedAt > idleSaveMs || (await hasTransactions(rpcUrl, seen, head))
    seen = head
    if (!due) return
    const began = performance.now()
    await saveChainState(rpcUrl, file)
    savedAt = performance.now()
    return savedAt - began
  }
  const schedule = (afterMs: number) => {
    timer = setTimeout(() => {
      // A state that takes long to save is saved less often. A chain that does not respond is reported by its owner.
      running = look().then(
        (tookMs = 0) => schedule(Math.max(lookMs, tookMs * 10)),
        () => schedule(lookMs),
      )
    }, afterMs).unref()
  }
  schedule(lookMs)
  return {
    async stop() {
      clearTimeout(timer)
      await running
      clearTimeout(timer)
    },
  }
}

/** Ends an anvil that a killed launcher left behind, after saving its state, so that no mined block is lost. */
export async function endOrphanChain(stateFile: string): Promise<void> {
  const { pid, rpcUrl } = readPidFile(pidFile(stateFile))
  const alive = () => pid > 0 && commandLine(pid)?.includes(markOf(stateFile)) === true
  if (alive()) {
    await saveChainState(rpcUrl, stateFile).catch(() => {})
    signalProcess(pid, 'SIGTERM')
    if (!(await waitUntil(() => !alive(), orphanMs))) signalProcess(pid, 'SIGKILL')
  }
  forgetChain(stateFile)
}

/**
 * Returns the marker in the command line of the chain of a state file. It distinguishes the chain from another process
 * with a reused pid.
 */
export function markOf(stateFile: string): string {
  return `${stateFile}.cache`
}

/** Records who runs the chain, so that the next start finds it if this process is killed. */
export function rememberChain(stateFile: string, pid: number | undefined, rpcUrl: string): void {
  writeFileSync(pidFile(stateFile), JSON.stringify({ pid, rpcUrl }))
}

export function forgetChain(stateFile: string): void {
  rmSync(pidFile(stateFile), { force: true })
}

function pidFile(stateFile: string): string {
  return `${stateFile}.pid`
}

function readPidFile(file: string): { pid: number; rpcUrl: string } {
  const none = { pid: 0, rpcUrl: 'http://127.0.0.1:0' }
  if (!existsSync(file)) return none
  try {
    const { pid, rpcUrl } = JSON.parse(readFileSync(file, 'utf8'))
    return typeof pid === 'number' && typeof rpcUrl === 'string' ? { pid, rpcUrl } : none
  } catch {
    return none
  }
}

async function hasTransactions(rpcUrl: string, seen: number, head: number): Promise<boolean> {
  if (head - seen > 5) return true
  for (let block = seen + 1; block <= head; block += 1) {
    const count = await rpcHex(rpcUrl, 'eth_getBlockTransactionCountByNumber', [`0x${block.toString(16)}`])
    if (Number(count) > 0) return true
  }
  return false
}

function trim(raw: Buffer): Buffer | string {
  if (raw.length > trimBytesMax) return raw
  const state: unknown = JSON.parse(raw.toString('utf8'))
  if (!isRecord(state) || !Array.isArray(state.blocks)) return raw
  const blocks = sortByNumber(state.blocks)
  const kept = blocks.filter(
    (block, index) => index === 0 || index >= blocks.length - emptyBlocksKept || !isEmpty(block),
  )
  return JSON.stringify({ ...state, blocks: kept, historical_states: null })
}

function sortByNumber(blocks: unknown[]): unknown[] {
  return blocks.toSorted((a, b) => blockNumber(a) - blockNumber(b))
}

function blockNumber(block: unknown): number {
  return isRecord(block) && isRecord(block.header) ? Number(block.header.number) : 0
}

function isEmpty(block: unknown): boolean {
  return isRecord(block) && Array.isArray(block.transactions) && block.transactions.length === 0
}
