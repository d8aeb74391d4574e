export default {connectToDevTools() {}};
