import { spawnSync } from 'node:child_process'

/**
 * Runs the server's own program for operator commands, because only that program uses the database. Returns its exit
 * code, or undefined if it is not installed.
 */
export function forwardToServer(args: readonly string[]): number | undefined {
  const { status, error } = spawnSync('purser-admin', args, { stdio: 'inherit' })
  return error === undefined ? (status ?? 1) : undefined
}
