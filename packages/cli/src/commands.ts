import type { Command } from './command.ts'
import { eventsGet, eventsList, eventsResend } from './commands/events.ts'
import { listen } from './commands/listen.ts'
import { login, logout } from './commands/login.ts'
import { trigger } from './commands/trigger.ts'
import { verify } from './commands/verify.ts'

/** Every command of `purser`, in the order of `purser --help`. */
export const commands: readonly Command[] = [
  login,
  logout,
  listen,
  trigger,
  eventsList,
  eventsGet,
  eventsResend,
  verify,
]

/** Commands of another program, with a message that names it. */
export const elsewhere: Readonly<Record<string, string>> = {
  admin: 'Operator commands use the database and are part of the server: purser-admin (package @purser/server).',
  migrate: 'purser migrate uses the database and is part of the server: purser-admin migrate (package @purser/server).',
  keys: 'Commands on sealed keys use the database and are part of the server: purser-admin (package @purser/server).',
}
