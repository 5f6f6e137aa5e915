import { spawnSync } from 'node:child_process'

/**
 * Hands the operator's commands to the server's own program, which alone touches the database. Answers its exit code;
 * undefined where it is not installed.
 */
export function forwardToServer(args: readonly string[]): number | undefined {
  const { status, error } = spawnSync('purser-admin', args, { stdio: 'inherit' })
  return error === undefined ? (status ?? 1) : undefined
}
