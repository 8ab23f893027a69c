// A worker that says what it can do: a skill with a live section, a slash-command, and an ear for changes.
//
//   iii-directory up                                          in one terminal
//   cd examples/node_worker && npm install && npm start       in another; the order does not matter
//   iii-directory trigger skill::fetch uri=iii://node-greeter

import { setTimeout as pause } from 'node:timers/promises'
import { registerWorker } from 'iii-sdk'

const iii = registerWorker(process.env.III_URL ?? 'ws://127.0.0.1:49134', {
  workerName: 'node-greeter',
  otel: { enabled: false },
})

// Served at iii://fn/node-greeter/status, made anew for every reader.
iii.registerFunction('node-greeter::status', async () => ({
  content: '# Status of the greeter\n\nAll greetings are in stock.\n',
}))

// Renders the slash-command. { content } is one message of the user; { messages } would be a whole conversation.
iii.registerFunction('node-greeter::greet', async ({ name = 'the world' }) => ({
  content: `Greet ${name} warmly, in one sentence.`,
}))

// Told of every registration, this worker's own included. `config` must be given, even if there is nothing to say.
iii.registerFunction('node-greeter::on-change', async ({ op, id }) => {
  console.log(`${op} ${id}`)
})
iii.registerTrigger({ type: 'skills::on-change', function_id: 'node-greeter::on-change', config: {} })

const skill = `# node-greeter

Writes greetings. Ask for its [\`status\`](iii://fn/node-greeter/status) first.
`

await register('skills::register', { id: 'node-greeter', skill })
await register('prompts::register', {
  name: 'node-greet',
  description: 'Compose a greeting.',
  arguments: [{ name: 'name', description: 'Who to greet', required: true }],
  function_id: 'node-greeter::greet',
})
console.log('published')

// The directory may be started later than this worker: try until it answers, less and less often.
async function register(function_id, payload) {
  for (let seconds = 0.5; ; seconds = Math.min(seconds * 2, 30)) {
    try {
      return await iii.trigger({ function_id, payload, timeoutMs: 5000 })
    } catch (error) {
      // D1xx and D2xx are about what was sent; trying again would not help.
      if (/\bD[12]\d\d /.test(error.message)) throw error
      await pause(seconds * 1000)
    }
  }
}

for (const signal of ['SIGINT', 'SIGTERM']) {
  process.on(signal, async () => {
    await iii.shutdown()
    process.exit(0)
  })
}
