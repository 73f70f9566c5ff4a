// The connection is lost and comes back, with a change that was made meanwhile.
import { assert, control, flow, made, open, picture, see, settled } from './lib.mjs'

await flow(async (step) => {
  await made('/upstream', { upstream_name: 'blue', upstream_ip: '192.0.2.1', upstream_port: 80 })
  const page = await open('#/upstream')
  await settled(page)
  await see(page, 'blue')
  await page.locator('.connection').getByText('Live', { exact: true }).waitFor()

  step('a change of others is shown without a reload')
  await made('/upstream', { upstream_name: 'green', upstream_ip: '192.0.2.2', upstream_port: 80 })
  await see(page, 'green')

  step('the page says that the connection is lost, and keeps what it has')
  await control('stop')
  await see(page, 'Connection lost')
  assert.ok(await page.getByText('green').first().isVisible())

  step('it heals by itself, with what has happened')
  await control('start')
  await page.locator('.connection').getByText('Live', { exact: true }).waitFor()
  await made('/upstream', { upstream_name: 'red', upstream_ip: '192.0.2.3', upstream_port: 80 })
  await see(page, 'red')
})
