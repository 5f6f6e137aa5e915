const mebibyte = 2 ** 20

/**
 * The most bytes that an `api` process keeps for what callers, sellers and the storage have not sent or read completely. Each use counts its own memory
 * and refuses or cuts beyond it. The chart gives a process the sum of all, because tenants may use up each of them at once.
 */
export const memoryBudgets = {
  /** Default of `BODIES_MEGABYTES_MAX`: bodies of requests. Responses and payments of URLs have as much each. */
  bodies: 64 * mebibyte,
  /** Unread bytes of streams of vaults. */
  vaultStreams: 256 * mebibyte,
  /** Unread bytes of streams of webhook events. */
  listeners: 64 * mebibyte,
  /** Parts of uploads to an S3 storage. */
  uploads: 192 * mebibyte,
  /** Large buffers of transfers of files with the disk storage. */
  fileBuffers: 64 * mebibyte,
} as const

/** A process that serves nobody, with what V8 and the system add to bodies of these budgets. */
const besideBytes = 256 * mebibyte

/**
 * Returns the bytes that an `api` process may use: its budgets, of which bodies count three times and an eighth more for reports of changes, and the process
 * itself. It has an S3 storage or disks, and the larger of their budgets counts.
 */
export function memoryNeeded(bodiesBytesMax: number = memoryBudgets.bodies): number {
  const { vaultStreams, listeners, uploads, fileBuffers } = memoryBudgets
  return 3.125 * bodiesBytesMax + vaultStreams + listeners + Math.max(uploads, fileBuffers) + besideBytes
}
