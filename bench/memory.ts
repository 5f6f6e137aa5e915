import { readFileSync, writeFileSync } from 'node:fs'

/** The resident memory of a process in bytes. Linux only, like everything that reads /proc. */
export function residentBytes(pid: number): number {
  return statusBytes(pid, 'VmRSS')
}

/**
 * Resets the peak of a process's resident memory. The returned function returns the peak since then in bytes. The
 * kernel tracks it, so nothing between two samples is missed. If the kernel does not allow a reset, the peak covers
 * the whole lifetime, which is never less.
 */
export function watchPeak(pid: number): () => number {
  try {
    writeFileSync(`/proc/${pid}/clear_refs`, '5')
  } catch {
    // Use the peak since the process started.
  }
  return () => statusBytes(pid, 'VmHWM')
}

function statusBytes(pid: number, field: 'VmRSS' | 'VmHWM'): number {
  const line = readFileSync(`/proc/${pid}/status`, 'utf8')
    .split('\n')
    .find((one) => one.startsWith(`${field}:`))
  const kilobytes = /\d+/.exec(line ?? '')?.[0]
  if (kilobytes === undefined) throw new Error(`/proc/${pid}/status has no ${field}`)
  return Number(kilobytes) * 1_024
}
