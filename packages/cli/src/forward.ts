import { spawnSync } from 'node:child_process'

/**
 * Runs the program that has these commands: `purser-dev` for those on a local deployment, `purser-admin` for those on the database. Returns its
 * exit code, or undefined if it is not installed.
 */
export function forward(args: readonly string[]): number | undefined {
  const { status, error } = spawnSync(args[0] === 'dev' ? 'purser-dev' : 'purser-admin', args, { stdio: 'inherit' })
  return error === undefined ? (status ?? 1) : undefined
}
