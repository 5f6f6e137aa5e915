import type { Command } from './command.ts'
import { completionOf } from './commands/completion.ts'
import { eventsGet, eventsList, eventsResend } from './commands/events.ts'
import { listen } from './commands/listen.ts'
import { login, logout } from './commands/login.ts'
import { operationCommands } from './commands/operations.ts'
import { pay } from './commands/pay.ts'
import { trigger } from './commands/trigger.ts'
import { verify } from './commands/verify.ts'

const ownCommands: readonly Command[] = [
  login,
  logout,
  pay,
  listen,
  trigger,
  eventsList,
  eventsGet,
  eventsResend,
  verify,
]

/** Commands that `purser --help` lists one by one. Commands of API operations are grouped by their first word. */
export const mainCommands: readonly Command[] = [...ownCommands, completionOf([...ownCommands, ...operationCommands])]

/** Every command of `purser`. */
export const commands: readonly Command[] = [...mainCommands, ...operationCommands]

/** Commands of another program, with a message that names it. */
export const elsewhere: Readonly<Record<string, string>> = {
  dev: 'purser dev works on a running npm start and is part of the repository: purser-dev (package @purser/devnet).',
  admin: 'Operator commands use the database and are part of the server: purser-admin (package @purser/server).',
  migrate: 'purser migrate uses the database and is part of the server: purser-admin migrate (package @purser/server).',
  keys: 'Commands on sealed keys use the database and are part of the server: purser-admin (package @purser/server).',
}
