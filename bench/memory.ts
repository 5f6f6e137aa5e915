import { readFileSync, writeFileSync } from 'node:fs'

/** Bytes of memory that a process holds now (resident set). Linux only, as all that reads /proc. */
export function residentBytes(pid: number): number {
  return statusBytes(pid, 'VmRSS')
}

/**
 * Begins a new peak of a process's resident memory; the returned function gives the peak since then, in bytes, as the
 * kernel keeps it, so that nothing between two samples is missed. Where the kernel lets nobody begin anew, the peak is
 * that of the process's whole life, which is never less.
 */
export function watchPeak(pid: number): () => number {
  try {
    writeFileSync(`/proc/${pid}/clear_refs`, '5')
  } catch {
    // The peak since the process began stands in.
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
